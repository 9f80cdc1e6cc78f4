"""Dependencies point one way, and the memory and the rewards load without any deep-learning library."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

ORDER = ("memory_env", "rewards", "rollout", "writer_rl", "launch")
HEAVY = {"torch", "vllm", "deepspeed", "transformers", "accelerate", "wandb"}
# An embedder that needs torch may be imported by the module that offers it, when it is first used.
LAZY_EMBEDDERS = {"memory_env/query/retrieve/dense.py"}


def imports_of(path: Path) -> set[tuple[str, bool]]:
    """(top-level package, whether it is imported when the module loads) of every import statement."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    inside_functions = {
        id(inner)
        for outer in ast.walk(tree)
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for inner in ast.walk(outer)
    }
    found = set()
    for node in ast.walk(tree):
        at_load = id(node) not in inside_functions
        if isinstance(node, ast.Import):
            found |= {(alias.name.split(".")[0], at_load) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import; write the full name"
            found.add((node.module.split(".")[0], at_load))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
            "import_module",
            "__import__",
        ):
            names = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            found |= {(str(name).split(".")[0], at_load) for name in names}
    return found


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", ORDER)
def test_dependencies_point_one_way(package):
    assert modules(package), f"{package} has no module"
    above = set(ORDER[ORDER.index(package) + 1 :]) | {"tests"}
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}" for path in modules(package) for name, _ in imports_of(path) if name in above
    ]
    assert wrong == []


@pytest.mark.parametrize("package", ["memory_env", "rewards"])
def test_memory_and_rewards_import_no_deep_learning_library(package):
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(package)
        for name, at_load in imports_of(path)
        if name in HEAVY and (at_load or path.relative_to(ROOT).as_posix() not in LAZY_EMBEDDERS)
    ]
    assert wrong == []


@pytest.mark.parametrize("package", ["memory_env", "rewards"])
def test_loading_every_module_of_memory_and_rewards_loads_none_of_them(package):
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in modules(package)
        if path.name != "__main__.py"
    ]
    script = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print(sorted(set(sys.modules) & {HEAVY!r}))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_the_check_sees_imports_wherever_they_stand(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        "import json, torch.nn\nfrom vllm.x import y\nif True:\n    import wandb\n"
        "def f():\n    import deepspeed\n    importlib.import_module('transformers')\n"
    )
    assert imports_of(module) == {
        ("json", True), ("torch", True), ("vllm", True), ("wandb", True), ("deepspeed", False), ("transformers", False),
    }  # fmt: skip
