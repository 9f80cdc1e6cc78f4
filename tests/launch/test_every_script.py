"""What holds for all scripts that people run."""

import json
import re
import subprocess
import sys

import pytest

from tests.launch.scripts import ROOT, spawn

HELPERS = {"__init__", "cli", "launch", "preparing", "stages"}
SCRIPTS = sorted(file.stem for file in (ROOT / "launch").glob("*.py") if file.stem not in HELPERS)
SLOW_TO_IMPORT = {"torch", "transformers", "vllm", "deepspeed", "pydantic", "numpy", "scipy", "jinja2", "openai", "wandb", "mcp"}


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_teaches_and_a_wrong_option_is_one_line(script):
    helped = spawn(script, "--help")
    assert helped.returncode == 0 and helped.stderr == ""
    assert len(helped.stdout.splitlines()) > 5
    wrong = spawn(script, "--no-such-option")
    assert wrong.returncode == 2
    assert 1 <= wrong.stderr.count("\n") <= 3 and "Traceback" not in wrong.stderr


LOADED = """
import json, runpy, sys
sys.argv = [{path!r}, "--help"]
sys.path[0] = {folder!r}
try:
    runpy.run_path({path!r}, run_name="__main__")
except SystemExit:
    print("\\nLOADED", json.dumps(sorted(set(sys.modules) & set({slow!r}))))
"""


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_loads_nothing_slow(script):
    folder = str(ROOT / "launch")
    code = LOADED.format(path=f"{folder}/{script}.py", folder=folder, slow=sorted(SLOW_TO_IMPORT))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    loaded = re.search(r"^LOADED (.*)$", done.stdout, re.MULTILINE)
    assert loaded, done.stderr
    assert json.loads(loaded[1]) == []


def test_a_script_runs_from_any_folder_and_as_a_module(tmp_path):
    here = subprocess.run([sys.executable, ROOT / "launch" / "plan.py", "--help"], cwd=tmp_path, capture_output=True, text=True)
    module = subprocess.run([sys.executable, "-m", "launch.plan", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert (here.returncode, module.returncode) == (0, 0), here.stderr + module.stderr
    assert here.stdout == module.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_python_without_the_packages_names_the_one_to_use(script, tmp_path):
    """-S: the interpreter alone, without any installed package."""
    command = [sys.executable, "-S", "-E", "-s", ROOT / "launch" / f"{script}.py", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{script}.py: {sys.executable} (Python 3.")
    assert "lacks numpy, scipy, jinja2, ..." in done.stderr and ".venv/bin/python" in done.stderr
    assert done.stderr.count("\n") == 1
