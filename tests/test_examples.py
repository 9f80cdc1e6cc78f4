"""The examples in docstrings say what the code does: every module that has one is run as a doctest."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("memory_env", "rewards", "rollout", "writer_rl", "launch")
SHOWN = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", SHOWN)
def test_examples_in_docstrings_hold(name):
    result = doctest.testmod(importlib.import_module(name))
    assert not result.failed
