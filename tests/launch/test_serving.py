"""docs/serving.md on the real vLLM: an exported Writer writes the same memory whoever runs it."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from memory_env import corpus
from memory_env.store.store import MemoryStore
from tests.conftest import PATIENCE
from tests.launch.scripts import ROOT, launch

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The committed tiny Writer, exported."""
    folder = tmp_path_factory.mktemp("serving") / "writer"
    ended = launch("export", "--checkpoint", "configs/tiny_writer", "--output", folder)
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """One held-out conversation as a file."""
    smallest = min(corpus.heldout_networks(), key=lambda network: len(network.messages))
    path = tmp_path_factory.mktemp("network") / f"{smallest.network_id}.json"
    path.write_text(json.dumps(smallest.to_dict()))
    return path


def written(source, network, output, *options):
    """(raw outputs, accuracy) of `launch/evaluate.py` with this Writer."""
    ended = launch(
        "evaluate", "--config", "configs/demo.yaml", "--writer", f"w={source}", "--networks", network, "--output", output,
        "--tracking.progress", "false", *options,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    (line,) = [json.loads(line) for line in (output / "memories.jsonl").read_text().splitlines()]
    row = json.loads((output / "evaluation.json").read_text())["rows"][0]
    return line["completions"], row["accuracy_mean"]


@pytest.fixture(scope="module")
def by_transformers(exported, network, tmp_path_factory):
    completions, accuracy = written(exported, network, tmp_path_factory.mktemp("hf") / "e")
    assert any('"ADD"' in each["text"] for each in completions) and accuracy > 0
    return completions, accuracy


@pytest.fixture(scope="module")
def address(exported, tmp_path_factory):
    """The base URL of a server that knows the Writer by its folder and as `writer`."""
    with vllm_server(tmp_path_factory.mktemp("server") / "log", "--served-model-name", str(exported), "writer",
                     "--model", str(exported)) as url:  # fmt: skip
        yield url


@contextmanager
def vllm_server(log, *arguments):
    """vLLM's OpenAI server (what `vllm serve` starts), ready to answer."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *arguments, "--enforce-eager"]
    command += ["--dtype", "float32"]  # as the folder is read; in half precision two nearly equal tokens may change places
    # What an engine in this process has set for itself is not for others.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VLLM_")}
    environment |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
    with log.open("w") as stream:
        server = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)], cwd=ROOT, stdout=stream, stderr=stream, env=environment
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while not answers(f"http://127.0.0.1:{port}/health"):
            assert server.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        try:
            server.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


def test_evaluation_with_the_vllm_engine_reads_the_same_memory(exported, network, by_transformers, tmp_path):
    assert written(exported, network, tmp_path / "e", "--rollout.engine", "vllm") == by_transformers


@pytest.mark.parametrize("known_by", ["folder", "name"])
def test_a_served_writer_is_evaluated_with_the_same_result(exported, network, by_transformers, address, tmp_path, known_by):
    source = f"served:{exported}" if known_by == "folder" else "served:writer"
    assert written(source, network, tmp_path / "e", "--evaluation.base_url", address) == by_transformers


def test_a_served_writer_remembers_what_the_folder_remembers(exported, address, tmp_path):
    states = []
    for name, options in (("folder", [exported]), ("served", [f"served:{exported}", "--base-url", address])):
        ended = launch("remember", "--memory", tmp_path / f"{name}.db", "--writer", *options, "docs/example/chat.txt")
        assert ended.returncode == 0, ended.stderr
        with MemoryStore(tmp_path / f"{name}.db") as store:
            states.append(store.state().to_dict())
    assert states[0] == states[1] and states[0]["entries"]
    asked = [
        launch("ask", "--memory", tmp_path / f"{name}.db", "What is Wes's favourite colour?").stdout
        for name in ("folder", "served")
    ]
    assert asked[0] == asked[1] and "Wes" in asked[0]


def test_a_server_that_does_not_know_the_model_is_one_line(exported, network, address, tmp_path):
    ended = launch(
        "evaluate", "--config", "configs/demo.yaml", "--writer", "w=served:nobody", "--networks", network, "--output",
        tmp_path / "e", "--evaluation.base_url", address, "--tracking.progress", "false",
    )  # fmt: skip
    assert ended.returncode == 1 and "nobody" in ended.stderr and ended.stderr.count("\n") <= 3
    assert not (tmp_path / "e" / "memories.jsonl").exists()
