"""docs/architecture.md: the conversation that it follows is followed, and the rooms that it draws are there."""

import doctest
import re

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "architecture.md"


def test_the_conversation_goes_the_way_that_is_told():
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.attempted > 8 and result.failed == 0


def test_the_rooms_are_those_of_the_packages():
    tree = PAGE.read_text(encoding="utf-8").split("```")[1]
    drawn, path = set(), []
    for indent, name in re.findall(r"^( *)(\w+)/ ", tree, re.MULTILINE):
        path = [*path[: len(indent) // 2], name]
        drawn.add("/".join(path))
    packages = ("memory_env", "rewards", "rollout", "writer_rl")
    folders = [folder for name in packages for folder in (ROOT / name).rglob("*") if any(folder.glob("*.py"))]
    rooms = {folder.relative_to(ROOT).as_posix() for folder in folders}
    assert {room for room in drawn if room.split("/")[0] in packages} == rooms | set(packages)
