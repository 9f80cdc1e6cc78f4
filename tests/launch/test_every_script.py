"""What holds for all scripts that people run."""

import pytest

from tests.launch.scripts import ROOT, spawn

HELPERS = {"__init__", "cli", "preparing"}
SCRIPTS = sorted(file.stem for file in (ROOT / "launch").glob("*.py") if file.stem not in HELPERS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_teaches_and_a_wrong_option_is_one_line(script):
    helped = spawn(script, "--help")
    assert helped.returncode == 0 and helped.stderr == ""
    assert len(helped.stdout.splitlines()) > 5
    wrong = spawn(script, "--no-such-option")
    assert wrong.returncode == 2
    assert 1 <= wrong.stderr.count("\n") <= 3 and "Traceback" not in wrong.stderr
