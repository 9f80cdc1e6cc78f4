"""launch/setup.sh before it installs anything: what is missing is named, all at once, with the remedy."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import PATIENCE

NEEDED = ("bash", "dirname", "awk", "df", "sed", "cat", "grep", "uname", "git", "make", "gcc", "g++")


def setup(repository, tmp_path, missing=(), python=sys.executable, *arguments):
    """`setup.sh --check` on a machine that has only what it needs, without `missing`."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in NEEDED:
        path = shutil.which(tool)
        if tool not in missing and path:
            (tools / tool).symlink_to(path)
    environment = {"PATH": str(tools), "HOME": os.environ.get("HOME", "/"), "VENV": str(tmp_path / "venv")}
    if python:
        environment["PYTHON"] = str(python)
    command = ["bash", "launch/setup.sh", "--check", *arguments]
    return subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture(autouse=True)
def _a_whole_machine():
    absent = [tool for tool in NEEDED if shutil.which(tool) is None]
    if absent:
        pytest.skip(f"this machine lacks {', '.join(absent)}")


def test_a_whole_machine_lacks_nothing(repository, tmp_path):
    ended = setup(repository, tmp_path)
    assert ended.returncode == 0 and "nothing is missing" in ended.stdout
    assert not (tmp_path / "venv").exists()


def test_everything_missing_is_named_at_once(repository, tmp_path):
    ended = setup(repository, tmp_path, missing=("g++", "gcc", "make"), python=None)
    assert ended.returncode == 2
    for named in ("Python 3.11", "make:", "gcc:", "g++:", "apt-get install"):
        assert named in ended.stderr
    assert "git:" not in ended.stderr


def test_a_python_that_is_too_old_or_lacks_venv(repository, tmp_path):
    old = tmp_path / "python-old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    ended = setup(repository, tmp_path, python=old)
    assert ended.returncode == 2 and "Python 3.11 or newer (PYTHON=" in ended.stderr
    bare = tmp_path / "python-bare"
    bare.write_text(f'#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    bare.chmod(0o755)
    shutil.rmtree(tmp_path / "bin")
    ended = setup(repository, tmp_path, python=bare)
    assert ended.returncode == 2 and "python3-venv" in ended.stderr and "Python 3.11" not in ended.stderr
