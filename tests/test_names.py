"""A name of a class means one thing in the whole project, so that a reader who has met it once knows it everywhere."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("memory_env", "rewards", "rollout", "writer_rl", "launch")
TWICE = {
    "Memory": "the product, and what retrieval reads of one; the latter is part of the frozen evaluation's hash",
}


def public_classes() -> dict[str, list[str]]:
    found = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(path.relative_to(ROOT).as_posix())
    return found


def test_no_two_public_classes_share_a_name():
    shared = {name: files for name, files in public_classes().items() if len(files) > 1}
    assert set(shared) <= set(TWICE), shared
