"""Dependencies point one way, and the memory and the rewards load without any deep-learning library."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

ORDER = ("memory_env", "rewards", "rollout", "writer_rl", "launch")
HEAVY = {"torch", "vllm", "deepspeed", "transformers", "accelerate", "wandb"}
# An embedder that needs torch may be imported by the module that offers it, when it is first used.
LAZY_EMBEDDERS = {"memory_env/query/retrieve/dense.py"}
FLOORS = (("config", "command"), ("model",), ("train",), ("run", "export", "evaluation"), ("grpo", "sft"), ("memory", "report"))
"""Rooms of writer_rl from the ground up: a room takes from lower floors, never from higher ones. Rooms of one floor may lean on
each other in one direction only; grpo and sft not at all."""
RE_EXPORTS = {"writer_rl", "writer_rl.advantages", "writer_rl.objective"}
"""Names that users import: one line each, from wherever the thing lives."""


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


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def modules_imported(path: Path, known: set[str]) -> set[str]:
    """The modules of `known` that `path` imports anywhere, inside functions and for type checkers too."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & known
            found |= inner or {node.module}
    return (found & known) - {module_name(path)}


def first_circle(graph: dict[str, set[str]]) -> list[str]:
    """Names that import each other in a circle, the first one repeated at the end; [] where there is none."""
    done: set[str] = set()
    path: list[str] = []

    def visit(name: str) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        path.append(name)
        for other in sorted(graph.get(name, ())):
            if circle := visit(other):
                return circle
        path.pop()
        done.add(name)
        return []

    return next((circle for name in sorted(graph) if (circle := visit(name))), [])


def import_graph(package: str) -> dict[str, set[str]]:
    paths = {module_name(path): path for path in modules(package)}
    return {name: modules_imported(path, set(paths)) for name, path in paths.items()}


@pytest.mark.parametrize("package", ORDER)
def test_no_modules_import_each_other_in_a_circle(package):
    assert first_circle(import_graph(package)) == []


def test_the_rooms_of_writer_rl_take_from_the_floors_below():
    floor = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
    rooms: dict[str, set[str]] = {}
    for name, imported in import_graph("writer_rl").items():
        if name in RE_EXPORTS:
            continue
        assert not imported & RE_EXPORTS, f"{name}: import it from where it lives, not from {imported & RE_EXPORTS}"
        room = name.split(".")[1]
        rooms.setdefault(room, set()).update({other.split(".")[1] for other in imported} - {room})
    assert set(rooms) <= set(floor), f"writer_rl has rooms without a floor: {set(rooms) - set(floor)}"
    wrong = [f"{room} takes from {other}" for room, others in rooms.items() for other in others if floor[other] > floor[room]]
    assert wrong == []
    assert "sft" not in rooms["grpo"] and "grpo" not in rooms["sft"]
    assert first_circle(rooms) == []


def test_the_check_sees_circles_and_imports_inside_functions(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from p import b\n")
    (package / "b.py").write_text("def f():\n    from p.c import x\n")
    (package / "c.py").write_text("import json\n")
    assert import_graph("p") == {"p": set(), "p.a": {"p.b"}, "p.b": {"p.c"}, "p.c": set()}
    assert first_circle(import_graph("p")) == []
    (package / "c.py").write_text("if TYPE_CHECKING:\n    import p.a\n")
    assert first_circle(import_graph("p")) == ["p.a", "p.b", "p.c", "p.a"]


def test_the_check_sees_imports_wherever_they_stand(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        "import json, torch.nn\nfrom vllm.x import y\nif True:\n    import wandb\n"
        "def f():\n    import deepspeed\n    importlib.import_module('transformers')\n"
    )
    assert imports_of(module) == {
        ("json", True), ("torch", True), ("vllm", True), ("wandb", True), ("deepspeed", False), ("transformers", False),
    }  # fmt: skip


def test_the_wheel_takes_every_package():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {file.parent.relative_to(ROOT) for package in ORDER[:-1] for file in (ROOT / package).rglob("__init__.py")}
    missing = {".".join(folder.parts) for folder in folders} - set(listed)
    assert not missing, f"pyproject.toml, [tool.setuptools] packages lacks {sorted(missing)}"
    gone = [name for name in listed if not (ROOT / name.replace(".", "/")).is_dir() and name != "memory_env.prompt_files"]
    assert not gone, f"pyproject.toml, [tool.setuptools] packages names {gone}, which are not there"
