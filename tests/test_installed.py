"""The wheel, installed beside the packages it declares and away from any checkout, is a working application."""

import importlib.metadata
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CHAT = "speaker,ts,content\nAlice,2025-03-01 10:00,My sister lives in Bergen\nBob,2025-03-01 10:01,I work as a carpenter\n"


@pytest.fixture(scope="module")
def installed(repository, tmp_path_factory) -> Path:
    """The bin folder of an environment that has the wheel, what it declares, and none of what training needs."""
    base = tmp_path_factory.mktemp("installed")
    # Built from a copy: a build leaves files in its source.
    source = base / "source"
    for name in ("memory_env", "rewards", "rollout", "writer_rl", "configs/prompts"):
        shutil.copytree(repository / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(repository / name, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", base / "wheel", source]
    subprocess.run(build, check=True, capture_output=True)
    environment = base / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, capture_output=True)
    python = environment / "bin" / "python"
    (wheel,) = (base / "wheel").glob("*.whl")
    install = [*pip, "--python", python, "install", "--no-deps", "--no-index", wheel]
    subprocess.run(install, check=True, capture_output=True)
    query = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(query, check=True, capture_output=True, text=True).stdout.strip())
    declared = tomllib.loads((source / "pyproject.toml").read_text())["project"]["dependencies"]
    for found in needed(declared):
        for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."} - {"__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(found.locate_file(top))))
    return environment / "bin"


def needed(names: list[str]) -> list[importlib.metadata.Distribution]:
    """What is installed here of `names` and of everything that they need in turn."""
    found: dict[str, importlib.metadata.Distribution] = {}
    todo = list(names)
    while todo:
        name = canonicalize_name(todo.pop())
        if name in found:
            continue
        found[name] = importlib.metadata.distribution(name)
        wanted = [Requirement(line) for line in found[name].requires or ()]
        todo += [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    return list(found.values())


def ran(*command, cwd) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True)


def test_the_console_command_remembers_and_answers(installed, tmp_path):
    (tmp_path / "chat.csv").write_text(CHAT)
    made = ran(installed / "writer-rl", "memory", "remember", "--memory", "m.db", "chat.csv", cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, ""), made.stderr
    assert "2 messages of 2 members" in made.stdout
    asked = ran(installed / "writer-rl", "memory", "ask", "--memory", "m.db", "Where does Alice's sister live?", cwd=tmp_path)
    assert asked.returncode == 0 and "Bergen" in asked.stdout, asked.stderr


def test_python_has_memory_and_the_default_prompts(installed, repository, tmp_path):
    code = (
        "from writer_rl import Memory\n"
        "from memory_env.default_prompts import PROMPTS\n"
        "from memory_env.query.answer.endpoint import EndpointAnswerer, EndpointJudge\n"
        "from memory_env.query.answer.endpoint_client import EndpointClient, EndpointSettings\n"
        "from memory_env.query.prompted import PromptedProjector\n"
        "client = EndpointClient(EndpointSettings('m', 'http://127.0.0.1:9/v1'))\n"
        "EndpointAnswerer(client), EndpointJudge(client), PromptedProjector(client)\n"
        "from writer_rl.config import EvaluationConfig\n"
        "from writer_rl.evaluation.prompt_file import prompt_path\n"
        "assert prompt_path(EvaluationConfig()) == PROMPTS / 'writer.jinja'\n"
        "with Memory('m.db', writer='none') as memory: print(memory.state().roster)\n"
        "print(PROMPTS)\n"
    )
    done = subprocess.run(
        [installed / "python", "-c", code], cwd=tmp_path, capture_output=True, text=True, env={"OPENAI_API_KEY": "none"}
    )
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.splitlines()[-1])
    assert repository not in folder.parents
    shipped = {path.name: path.read_bytes() for path in (repository / "configs" / "prompts").iterdir()}
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == shipped


def test_the_server_names_the_package_that_it_lacks(installed, tmp_path):
    refused = ran(installed / "writer-rl", "memory", "serve", "memories", cwd=tmp_path)
    assert refused.returncode == 2 and "needs the package uvicorn" in refused.stderr and refused.stderr.count("\n") == 1


def test_a_writer_that_needs_torch_says_so_in_one_line(installed, repository, tmp_path):
    (tmp_path / "chat.csv").write_text(CHAT)
    writer = repository / "configs" / "tiny_writer"
    command = ("memory", "remember", "--memory", "m.db", "--writer", writer, "chat.csv")
    refused = ran(installed / "writer-rl", *command, cwd=tmp_path)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1, refused.stderr
    assert "needs the package torch" in refused.stderr and "pip install" in refused.stderr
