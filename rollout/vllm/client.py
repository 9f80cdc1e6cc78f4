"""The engine protocol spoken to a sampler server (`rollout.vllm.server`)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

import torch

from rollout.engine import EngineDied, EngineError, EngineStateError, Generation, GenerationRequest
from rollout.vllm.model_weights import checked_tensors, expected_shapes
from rollout.vllm.server import ERRORS, read_server_state
from rollout.vllm.weight_files import weight_files


@dataclass(slots=True)
class ServerProcess:
    """A sampler server that this process started.

    Example: ``ServerProcess(["--model", "runs/sft/export", "--tensor-parallel", "2"], Path("runs/a/sampler.json"))``
    """

    arguments: Sequence[str]
    state_file: Path
    environment: dict[str, str] = field(default_factory=dict)
    timeout_s: float = 600.0
    process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start the server and wait until it listens. Raises EngineError with its last line if it ends before."""
        self.stop()
        self.state_file.parent.mkdir(parents=True, exist_ok=True)
        self.state_file.unlink(missing_ok=True)
        log = self.state_file.with_suffix(".log")
        command = [sys.executable, "-m", "rollout.vllm.serve", "--state", str(self.state_file), *self.arguments]
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path, **self.environment}
        # The server ends when this pipe closes: it can't outlive its run, however that ends.
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [*command, "--until-stdin-closes"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        deadline = time.monotonic() + self.timeout_s
        while not self.state_file.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                lines = log.read_text(errors="replace").strip().splitlines() or ["no output"]
                self.stop()
                raise EngineError(f"the sampler server did not start: {lines[-1]} (see {log})")
            time.sleep(0.1)

    def stop(self) -> None:
        """End the server, by force if it takes longer than 20 s."""
        if self.process is None:
            return
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


class VLLMServerEngine:
    """One rank's view of a sampler server.

    Args:
        state_file: written by the server when it is ready.
        leader: this rank sends the weights; the others drain their iterator (gathering shards is collective) and wait for
            the version to arrive.
        sync_folder: where weights are put for the server; None: shared memory. On another machine: a path both see.
        server: the server process, where this rank started it: ``restart`` then starts it anew.
        patience_s: how long ``restart`` waits for a server that somebody else has to start again.
    """

    def __init__(
        self,
        state_file: Path,
        *,
        leader: bool = True,
        sync_folder: str | None = None,
        server: ServerProcess | None = None,
        patience_s: float = 600.0,
    ) -> None:
        self._state_file = Path(state_file)
        self._leader = leader
        self._sync_folder = sync_folder
        self._server = server
        self._patience_s = patience_s
        self._connection: Connection | None = None
        self._instance: str | None = None
        self._seen = 0
        self._closed = False
        if server is not None and server.process is None:
            server.start()
        description = self._connect()
        self.max_model_len: int = description["max_model_len"]
        self.policy_version: int = description["version"]
        self._expected = expected_shapes(description["model"])
        self._model = description["model"]

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """See `rollout.engine.Engine.generate`; requests of several ranks that arrive together share a batch."""
        return self._call("generate", list(requests)) if requests else self._call_nothing()

    def update_weights(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Through a folder that server and leader see. See `rollout.engine.Engine.update_weights`."""
        self._require_open("update_weights")
        if self._connection is None or not self._alive():
            self.restart()  # another rank may have lost the server before this one noticed
        pairs = checked_tensors(named_tensors, self._expected, self._model)
        if self._leader:
            largest = 4 * sum(shape.numel() for shape in self._expected.values())  # bytes, if they are float32
            with weight_files(pairs, self._sync_folder, total_bytes=largest) as folder:
                self._call("load_files", str(folder), version)
        else:
            for _ in pairs:
                pass
            self._seen = self._call("await_version", version, self._seen)
        self.policy_version = version

    def weight_checksums(self) -> dict[str, int]:
        """See `rollout.engine.Engine.weight_checksums`."""
        return self._call("weight_checksums")

    def sleep(self) -> None:
        """See `rollout.engine.Engine.sleep`. Every rank may call it; the server sleeps at the first call."""
        self._unless_gone("sleep")

    def wake(self) -> None:
        """See `rollout.engine.Engine.wake`."""
        self._unless_gone("wake")

    def restart(self) -> None:
        """Start the server anew where this rank owns it, else wait for one and have it start its engine anew if that is dead.

        The weights are unknown until a sync.
        """
        self._require_open("restart")
        self._disconnect()
        if self._server is not None:
            self._server.start()
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                self._connect()
                break
            except EngineError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
        self._call("revive")

    def metrics(self) -> dict[str, float]:
        """The server's counts since the last call by any rank; see `rollout.vllm.engine.VLLMEngine.metrics`."""
        return self._unless_gone("metrics") or {"prompt_tokens": 0.0, "generated_tokens": 0.0, "seconds": 0.0}

    def close(self) -> None:
        """Leave the server; end it where this rank started it."""
        if self._closed:
            return
        self._closed = True
        self._disconnect()
        if self._server is not None:
            self._server.stop()

    def _call_nothing(self) -> list[Generation]:
        self._require_open("generate")
        return []

    def _call(self, operation: str, *arguments: Any) -> Any:
        self._require_open(operation)
        if self._connection is None:
            raise EngineDied(f"{operation}: the sampler server is gone; restart it and sync")
        try:
            self._connection.send((operation, arguments))
            status, *answer = self._connection.recv()
        except (EOFError, OSError) as error:
            self._disconnect()
            raise EngineDied(
                f"{operation}: the sampler server is gone ({type(error).__name__}; its log is "
                f"{self._state_file.with_suffix('.log')}); restart it and sync"
            ) from error
        if status == "ok":
            return answer[0]
        kind, message = answer
        raise ERRORS[kind](message)

    def _unless_gone(self, operation: str) -> Any:
        """The server's answer; None where it or its engine is gone: the next ``generate`` or ``update_weights`` sees to that."""
        try:
            return self._call(operation)
        except EngineDied:
            return None

    def _alive(self) -> bool:
        try:
            return self._call("describe")["alive"]
        except EngineDied:
            return False

    def _connect(self) -> dict[str, Any]:
        address, key = read_server_state(self._state_file)
        try:
            self._connection = Client(address, authkey=key)
        except (OSError, EOFError, AuthenticationError) as error:
            raise EngineDied(
                f"no sampler server answers at {address[0]}:{address[1]} of {self._state_file} ({type(error).__name__}); "
                "start it again with python launch/sampler.py"
            ) from error
        description = self._call("describe")
        if description["instance"] != self._instance:
            # Whatever the first server had been sent before is an earlier run's; a later server was sent nothing but ours.
            self._seen = description["transfers"] if self._instance is None else 0
            self._instance = description["instance"]
        return description

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _require_open(self, what: str) -> None:
        if self._closed:
            raise EngineStateError(f"{what}: the engine is closed")
