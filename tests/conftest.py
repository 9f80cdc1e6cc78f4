"""What every test shares: a quiet, offline, reproducible process, and the public data where it lies beside the checkout.

Helper modules are imported by their full name, `from tests.rollout.helpers import ...`; test folders need no `__init__.py`.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
}
# Before anything imports torch: it reads its thread count once.
for _name, _value in OFFLINE.items():
    os.environ.setdefault(_name, _value)

# A shell that starts the suite in the background ignores Ctrl-C, and every child would inherit that.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is slow, not wrong; and the same examples every time make a red test red for everyone.
settings.register_profile(
    "repository", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repository"))

PATIENCE = 3600
"""Seconds until a test gives up on what hangs. Never a deadline: a busy machine is slow, and no test fails for that."""

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if importlib.util.find_spec("vllm") is not None:
        return
    missing = pytest.mark.skip(reason="vLLM is not installed (requirements/cpu.txt or gpu.txt)")
    for item in items:
        if item.get_closest_marker("vllm"):
            item.add_marker(missing)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data beside the checkout (speakermem_r1/, locomo/); skips where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the public data ../shared/data is not beside this checkout")
    return SHARED_DATA


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository's root."""
    return ROOT
