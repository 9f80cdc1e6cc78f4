"""A vLLM engine in a process of its own, for a sampler that has its own GPUs: ``python launch/sampler.py --help``.

The server listens on a socket and writes a *state file* (address and a key, readable by its owner only) once it is ready; every
rank of a run connects through that file. Token ids cross the socket, weights cross a folder that both sides see.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from rollout.engine import EngineDied, EngineError, EngineStateError, Generation, PromptTooLong

GATHER_SECONDS = 0.1
"""How long the first of several connected ranks waits for the others, so that their requests share one batch."""

ERRORS = {kind.__name__: kind for kind in (PromptTooLong, EngineStateError, EngineDied, EngineError, ValueError)}


@dataclass(frozen=True, slots=True)
class Settlement:
    """Which servers hold a policy, as the rank that sent it says: every rank then samples from the same ones.

    run: names the leader's process. number: its transfers, counted. instances: of the servers that took the weights.

    Example: ``Settlement(run="3f2a", number=7, version=6, instances=("a1", "b2"))``
    """

    run: str = ""
    number: int = 0
    version: int = -1
    instances: tuple[str, ...] = ()


@dataclass(slots=True)
class _Call:
    client: Connection
    operation: str
    arguments: tuple[Any, ...]


@dataclass(slots=True)
class VLLMServer:
    """Serves one engine to any number of clients; calls are executed one at a time, ``generate`` calls merged.

    Example: ``VLLMServer(engine).serve("127.0.0.1", 0, Path("runs/a/sampler.json"))`` returns after a client's ``shutdown``.
    """

    engine: Any
    instance: str = field(default_factory=lambda: secrets.token_hex(8))
    """Tells a client that it talks to another server than before."""
    transfers: int = 0
    """Completed transfers of weights."""
    settlement: Settlement = Settlement()
    """What the leader said last; a version alone can't tell this run's weights from an earlier run's."""
    checked: int = -1
    """The transfer that `checksums` belong to."""
    checksums: dict[str, int] = field(default_factory=dict)
    clients: set[Connection] = field(default_factory=set)
    """Those that ever called for anything but a sign of life."""
    calls: Queue[_Call] = field(default_factory=Queue)

    def serve(self, host: str, port: int, state_file: Path) -> None:
        """Listen on ``host``:``port`` (0: a free one) until told to shut down; the state file exists exactly meanwhile."""
        key = secrets.token_bytes(32)
        with Listener((host, port), backlog=64, authkey=key) as listener:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            _write_state(state_file, listener.address, key)
            try:
                self._loop()
            finally:
                state_file.unlink(missing_ok=True)
                self.engine.close()

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                client = listener.accept()
            except OSError:  # the listener is closed
                return
            except Exception:  # somebody without the key
                continue
            threading.Thread(target=self._receive, args=(client,), daemon=True).start()

    def _receive(self, client: Connection) -> None:
        try:
            while True:
                operation, arguments = client.recv()
                if operation == "ping":  # answered here, however long the engine computes
                    client.send(("ok", None))
                    continue
                self.clients.add(client)
                self.calls.put(_Call(client, operation, arguments))
        except (EOFError, OSError):
            self.clients.discard(client)

    def _loop(self) -> None:
        while True:
            call = self.calls.get()
            if call.operation == "shutdown":
                _reply(call, None)
                return
            if call.operation == "generate":
                for other in self._generate([call, *self._companions()]):
                    self.calls.put(other)
            else:
                _answer(call, lambda call=call: self._execute(call.operation, call.arguments))

    def _companions(self) -> Iterator[_Call]:
        """Calls of the other connected clients, as long as they come in soon after each other."""
        for _ in range(len(self.clients) - 1):
            try:
                yield self.calls.get(timeout=GATHER_SECONDS)
            except Empty:
                return

    def _generate(self, calls: list[_Call]) -> list[_Call]:
        """Run all ``generate`` calls as one batch; returns the calls that were of another kind."""
        mine = [call for call in calls if call.operation == "generate"]
        batches = [call.arguments[0] for call in mine]
        owners = [(call, index) for call, batch in zip(mine, batches, strict=True) for index in range(len(batch))]

        def on_done(place: int, generation: Generation) -> None:
            call, index = owners[place]
            _send(call.client, ("done", index, generation))

        try:
            self.engine.generate([request for batch in batches for request in batch], on_done)
        except Exception as error:
            for call in mine:
                _fail(call, error)
        else:
            for call in mine:
                _reply(call, None)
        return [call for call in calls if call.operation != "generate"]

    def _execute(self, operation: str, arguments: tuple[Any, ...]) -> Any:
        if operation == "load_files":
            self.engine.load_files(*arguments)
            self.transfers += 1
            return None
        if operation == "settle":
            (self.settlement,) = arguments
            return None
        if operation == "settlement":
            return self.settlement
        if operation == "describe":
            names = {"max_model_len": "max_model_len", "model": "model_path", "version": "policy_version", "alive": "alive"}
            description = {key: getattr(self.engine, attribute) for key, attribute in names.items()}
            return {**description, "instance": self.instance, "settlement": self.settlement}
        if operation == "revive":  # every rank asks for it
            if not self.engine.alive:
                self.checked = -1
                self.engine.restart()
            return None
        if operation == "weight_checksums":  # every rank asks; one answer a transfer
            if self.checked != self.transfers:
                self.checksums, self.checked = self.engine.weight_checksums(), self.transfers
            return self.checksums
        if operation in ("sleep", "wake", "metrics"):
            return getattr(self.engine, operation)()
        raise ValueError(f"the sampler server knows no operation {operation!r}")


def read_server_state(path: Path) -> tuple[tuple[str, int], bytes]:
    """Address and key of a running server. Raises EngineError naming the remedy."""
    try:
        state = json.loads(path.read_text())
        return (state["host"], int(state["port"])), bytes.fromhex(state["key"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EngineError(
            f"{path} is no state file of a running sampler server ({type(error).__name__}); start one with "
            f"python launch/sampler.py --state {path}"
        ) from None


def dialled(host: str) -> str:
    """What others dial to reach a server that listens on ``host``.

    0.0.0.0, every interface, is no address to dial: this machine's address on the network then, or its name without a network.
    """
    if host not in ("0.0.0.0", ""):
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only chooses the interface that leads outside (RFC 5737)
        except OSError:
            return socket.gethostname()
        return str(probe.getsockname()[0])


def _write_state(path: Path, address: tuple[str, int], key: bytes) -> None:
    from memory_env.files import write_text  # here, so that --help loads nothing slow

    state = {"host": dialled(address[0]), "port": address[1], "key": key.hex(), "pid": os.getpid()}
    write_text(path, json.dumps(state), private=True)


def _answer(call: _Call, work: Any) -> None:
    try:
        _reply(call, work())
    except Exception as error:
        _fail(call, error)


def _reply(call: _Call, result: Any) -> None:
    _send(call.client, ("ok", result))


def _fail(call: _Call, error: Exception) -> None:
    kind = next((name for name, known in ERRORS.items() if isinstance(error, known)), "EngineError")
    _send(call.client, ("error", kind, str(error)))


def _send(client: Connection, message: Any) -> None:
    with suppress(OSError):  # the client is gone; its requests are nobody's any more
        client.send(message)
