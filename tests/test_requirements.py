"""The environment that is installed is the one that was tested, and holds what the code imports."""

import ast
import importlib.metadata
import re
import sys
import tomllib

PACKAGES = ("memory_env", "rewards", "rollout", "writer_rl")
# Imported under another name than they are installed under.
INSTALLED_AS = {"yaml": "pyyaml", "pydantic_core": "pydantic", "huggingface_hub": "huggingface-hub", "sentence_transformers": "sentence-transformers"}
OPTIONAL = {"gguf"}


def pins(repository):
    found = {}
    for file in sorted((repository / "requirements").glob("*.txt")):
        for line in file.read_text().splitlines():
            if line and not line.startswith("#"):
                name, version = re.fullmatch(r"([A-Za-z0-9._-]+)==(\S+)", line).groups()
                found.setdefault(name.lower().replace("_", "-"), []).append((file.name, version))
    return found


def declared(repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *(name for names in project["optional-dependencies"].values() for name in names)]


def test_every_version_stands_in_one_place(repository):
    for name, places in pins(repository).items():
        files = [file for file, _ in places]
        # The two kinds of machine have their own torch.
        assert files in ([files[0]], ["cpu.txt", "gpu.txt"]), f"{name} is pinned in {files}"


def test_everything_declared_is_pinned_and_carries_no_version_of_its_own(repository):
    known = pins(repository)
    for requirement in declared(repository):
        assert re.fullmatch(r"[A-Za-z0-9._-]+", requirement), f"{requirement}: the version belongs into requirements/"
        assert requirement.lower() in known, f"{requirement} is not in requirements/"


def test_everything_imported_is_declared(repository):
    names = {name.lower() for name in declared(repository)}
    ours = {*PACKAGES, "launch", "tests"}
    for file in (path for package in (*PACKAGES, "launch") for path in (repository / package).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules = [node.module]
            for module in (name.split(".")[0] for name in modules):
                if module in ours or module in sys.stdlib_module_names or module in OPTIONAL:
                    continue
                assert INSTALLED_AS.get(module, module) in names, f"{file.name} imports {module}, which pyproject.toml lacks"


def test_what_is_installed_here_is_what_is_pinned(repository):
    """A mismatch is no failure of the code, so only the packages that this project uses itself are compared."""
    direct = (repository / "requirements" / "direct.txt").read_text()
    wrong = []
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==(\S+)$", direct, re.MULTILINE):
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if found.split("+")[0] != version:
            wrong.append(f"{name} {found}, pinned {version}")
    assert not wrong, "; ".join(wrong)
