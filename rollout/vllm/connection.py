"""One sampler server, as one rank sees it: a connection for calls, and one for its health."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from rollout.engine import EngineDied, Generation, GenerationRequest
from rollout.vllm.server import ERRORS, read_server_state

HEALTH_EVERY_S = 2.0
"""How often a server that is silent is asked whether it lives."""

HEALTH_PATIENCE_S = 15.0
"""A server that does not answer for so long counts as dead: hung, stopped, or its machine is gone."""


class ServerConnection:
    """A connection to the server of one state file; made by `connect`, gone after any `EngineDied`.

    Calls are answered in order, one at a time. While a call waits, the server's health is checked over a connection of its own.

    Example: ``server = ServerConnection(Path("runs/a/sampler.json")); server.connect(); server.call("describe")["version"]``
    """

    def __init__(self, state_file: Path, every_s: float = HEALTH_EVERY_S, patience_s: float = HEALTH_PATIENCE_S) -> None:
        self.state_file = state_file
        self.every_s, self.patience_s = every_s, patience_s
        self.description: dict[str, Any] = {}
        """What the server said of itself when it was connected: model, max_model_len, version, instance, alive, settlement."""
        self._calls: Connection | None = None
        self._health: Connection | None = None

    @property
    def connected(self) -> bool:
        """Whether calls can be made."""
        return self._calls is not None

    @property
    def instance(self) -> str:
        """Names the server's process; another one behind the same file has another."""
        return self.description.get("instance", "")

    def connect(self) -> None:
        """Dial whoever the state file names now. EngineError without a state file, EngineDied where nobody answers."""
        self.disconnect()
        address, key = read_server_state(self.state_file)
        try:
            self._calls, self._health = _dial(address, key, self.patience_s), _dial(address, key, self.patience_s)
        except (OSError, EOFError, AuthenticationError, TimeoutError) as error:
            self.disconnect()
            raise EngineDied(
                f"no sampler server answers at {address[0]}:{address[1]} of {self.state_file} ({type(error).__name__}); "
                "start it again with python launch/sampler.py"
            ) from error
        self.description = self.call("describe")

    def disconnect(self) -> None:
        """Leave the server."""
        for connection in (self._calls, self._health):
            if connection is not None:
                connection.close()
        self._calls = self._health = None

    def call(self, operation: str, *arguments: Any) -> Any:
        """The server's answer. Raises what the server raised, EngineDied where the server is gone."""
        return self._ask(operation, arguments, lambda index, generation: None)

    def generate(self, requests: Sequence[GenerationRequest], on_done: Callable[[int, Generation], None]) -> None:
        """Tell `on_done` the place and completion of every request as it ends, so that a death loses none that had ended."""
        self._ask("generate", (list(requests),), on_done)

    def _ask(self, operation: str, arguments: tuple[Any, ...], on_done: Callable[[int, Generation], None]) -> Any:
        if self._calls is None:
            raise EngineDied(f"{operation}: the sampler server is gone; restart it and sync")
        try:
            self._calls.send((operation, arguments))
            while True:
                status, *answer = self._receive(self._calls)
                if status != "done":
                    break
                on_done(*answer)
        except (EOFError, OSError) as error:
            self.disconnect()
            raise EngineDied(
                f"{operation}: the sampler server is gone ({type(error).__name__}; its log is "
                f"{self.state_file.with_suffix('.log')}); restart it and sync"
            ) from error
        if status == "ok":
            return answer[0]
        kind, message = answer
        raise ERRORS[kind](message)

    def _receive(self, connection: Connection) -> Any:
        while not connection.poll(self.every_s):
            assert self._health is not None, "made with the other"
            self._health.send(("ping", ()))
            if not self._health.poll(self.patience_s):
                raise TimeoutError(f"no sign of life for {self.patience_s:g} s")
            self._health.recv()
        return connection.recv()


def _dial(address: tuple[str, int], key: bytes, patience_s: float) -> Connection:
    """A connection, or TimeoutError: neither a machine that is gone nor a stopped process may keep a run waiting."""
    made: list[Connection | BaseException] = []

    def attempt() -> None:
        try:
            made.append(Client(address, authkey=key))
        except BaseException as error:
            made.append(error)

    dialling = threading.Thread(target=attempt, daemon=True)
    dialling.start()
    dialling.join(patience_s)
    if not made:
        raise TimeoutError(f"no answer for {patience_s:g} s")
    if isinstance(made[0], BaseException):
        raise made[0]
    return made[0]
