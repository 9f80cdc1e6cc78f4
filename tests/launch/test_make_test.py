"""`make test` runs all its parts whatever fails, and its exit code tells of each."""

import subprocess

import pytest

from tests.conftest import PATIENCE, ROOT


@pytest.fixture
def environment(tmp_path):
    """A VENV whose ruff, mypy and python note that they ran and end as told."""

    def make(**codes):
        bin_folder = tmp_path / "bin"
        bin_folder.mkdir()
        for tool in ("ruff", "mypy", "python"):
            script = f'#!/bin/sh\nname={tool}\ncase "$*" in *"-m vllm"*) name=vllm;; esac\necho "$name $*" >> {tmp_path}/ran\n'
            script += "".join(f'if [ "$name" = {name} ]; then exit {code}; fi\n' for name, code in codes.items())
            (bin_folder / tool).write_text(script)
            (bin_folder / tool).chmod(0o755)
        return tmp_path

    return make


def run(folder, *paths):
    command = ["bash", str(ROOT / "launch/test.sh"), *paths]
    done = subprocess.run(command, env={"VENV": str(folder), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=PATIENCE)
    return done, [line.split()[0] for line in (folder / "ran").read_text().splitlines()]


@pytest.mark.parametrize("failing", ["ruff", "mypy", "python", "vllm"])
def test_every_part_runs_and_a_failing_one_is_named(environment, failing):
    done, ran = run(environment(**{failing: 1}))
    assert ran == ["ruff", "mypy", "python", "vllm"]
    assert done.returncode == 1
    part = {"python": "tests", "vllm": "vLLM tests"}.get(failing, failing)
    assert [line.split("  ")[0].strip() for line in done.stdout.splitlines() if "FAILED (exit code 1)" in line] == [part]
    assert done.stdout.count("passed") == 3


def test_all_well_ends_with_zero(environment):
    done, _ = run(environment())
    assert done.returncode == 0 and "FAILED" not in done.stdout


def test_paths_choose_tests_and_a_part_that_has_none_of_them_is_no_failure(environment):
    done, ran = run(environment(vllm=5), "tests/rewards")
    assert done.returncode == 0 and ran == ["python", "vllm"]


def test_an_interrupted_part_is_a_failure(environment):
    assert run(environment(python=2))[0].returncode == 1
