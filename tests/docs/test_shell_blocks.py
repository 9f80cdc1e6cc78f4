"""What README and docs tell a reader to type works: it is typed here, in a copy of the checkout, in the order of the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PATIENCE, ROOT
from tests.docs.shell_blocks import Command, commands, files, untagged

PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
LAUNCHERS = re.compile(r"\b(accelerate launch|torchrun)\b.*?(?=launch/\w+\.py)")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the tracked files, so that what a page writes stays out of the tree."""
    copy = tmp_path_factory.mktemp("docs") / "checkout"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    return copy


def shell(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", text], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=PATIENCE
    )


def held_against_help(command: Command, folder: Path) -> None:
    """Every option of the command is one that its script knows."""
    script = re.search(r"launch/\w+\.py(?: (?:read|teach|handwritten)\b)?|writer-rl(?: \w+)*", command.text)
    if script is None:
        return  # ls, export and the like
    program = script.group().split()
    prefix = "python " if program[0].endswith(".py") else ""
    known = shell(f"{prefix}{' '.join(program)} --help", folder)
    assert known.returncode == 0, known.stderr
    listed = known.stdout
    if "--settings" in listed:
        listed += shell(f"{prefix}{' '.join(program)} --settings", folder).stdout
    for option in re.findall(r"(?<=\s)--[\w.-]+", command.text[script.end() :]):
        assert re.search(rf"{re.escape(option.removeprefix('--'))}\b", listed), f"{command.page}:{command.line}: {option}"


def type_out(command: Command, folder: Path) -> None:
    text = command.text
    if text.startswith("make "):
        text = f"{text} --dry-run"
    elif command.mode == "dry":
        if not re.search(r"launch/(sft|grpo)\.py", text):
            held_against_help(command, folder)
            return
        text = f"{LAUNCHERS.sub('python ', text)} --dry-run"
    done = shell(text, folder)
    assert done.returncode == 0, f"{command.page}:{command.line}: $ {text}\n{done.stdout[-1500:]}{done.stderr[-3000:]}"


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run(page, checkout):
    for name, code in files(ROOT / page).items():
        (checkout / name).write_text(code)
    for command in commands(ROOT / page, page):
        if command.mode != "skip":
            type_out(command, checkout)


@pytest.mark.parametrize("page", PAGES)
def test_no_command_hides_in_a_block_that_is_not_run(page):
    assert [f"{page}:{line}" for line in untagged(ROOT / page)] == []


@pytest.mark.parametrize("page", PAGES)
def test_prose_is_at_most_120_columns_wide(page):
    inside, wide = False, []
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        inside ^= line.startswith("```")
        if not inside and len(line) > 120 and not line.startswith("|"):
            wide.append(f"{page}:{number}: {len(line)} columns")
    assert wide == []


def test_what_is_skipped_says_why():
    reasons = [command.reason for page in PAGES for command in commands(ROOT / page, page) if command.mode == "skip"]
    assert all(len(reason) > 8 for reason in reasons)


def test_blocks_are_read_as_a_reader_types_them(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\nmake demo     # a remark\npython launch/a.py \\\n    --x 1\n```\n\n<!-- test: skip, needs two GPUs -->\n"
        "```console\n$ python launch/b.py\nprinted\n$ ls\n```\n\n```\npython launch/hidden.py --now\n```\n"
    )
    found = commands(page, "page.md")
    assert [(c.line, c.text, c.mode) for c in found] == [
        (2, "make demo", "whole"),
        (4, "python launch/a.py --x 1", "whole"),
        (9, "python launch/b.py", "skip"),
        (11, "ls", "skip"),
    ]
    assert found[2].reason == "needs two GPUs"
    assert untagged(page) == [15]
    page.write_text("<!-- test: maybe -->\n")
    with pytest.raises(ValueError, match="page.md:1"):
        commands(page, "page.md")
