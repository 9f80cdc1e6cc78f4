"""The engine protocol spoken to one or several sampler servers (`rollout.vllm.server`)."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from rollout.engine import (
    EngineDied,
    EngineError,
    EngineStateError,
    Generation,
    GenerationRequest,
    RolloutInputError,
)
from rollout.vllm.connection import ServerConnection
from rollout.vllm.model_weights import checked_tensors, expected_shapes
from rollout.vllm.server import Settlement
from rollout.vllm.server_process import ServerProcess
from rollout.vllm.weight_files import weight_files

_log = logging.getLogger(__name__)

LOAD_ATTEMPTS = 3
"""How often the leader begins a transfer anew that no server has survived."""

T = TypeVar("T")


class VLLMServerEngine:
    """One rank's view of the sampler servers of a run.

    Requests are spread over the servers that hold the current policy. One that dies costs the completions it had not ended: the
    others sample those, with the same seeds. It joins again at the next sync, and so does one that was not there before. Which
    servers hold a policy the leader decides, and tells the other ranks through the servers themselves.

    Args:
        state_files: written by the servers when they are ready; one has to be there at the start.
        leader: this rank sends the weights; the others drain their iterator (gathering shards is collective) and wait for
            the version to arrive.
        sync_folder: where weights are put for the servers; None: shared memory. On another machine: a path all see.
        server: the server process, where this rank started it: ``restart`` then starts it anew.
        patience_s: how long ``restart`` waits for a server that somebody else has to start again.

    Example: ``VLLMServerEngine([Path("runs/a/one.json"), Path("runs/a/two.json")]).generate(requests)``
    """

    def __init__(
        self,
        state_files: Path | Sequence[Path],
        *,
        leader: bool = True,
        sync_folder: str | None = None,
        server: ServerProcess | None = None,
        patience_s: float = 600.0,
    ) -> None:
        files = [state_files] if isinstance(state_files, Path) else list(state_files)
        self._servers = [ServerConnection(file) for file in files]
        self._leader = leader
        self._sync_folder = sync_folder
        self._server = server
        self._patience_s = patience_s
        self._closed = False
        if server is not None and server.process is None:
            server.start()
        failures = self._connect_missing()
        self._live = [each for each in self._servers if each.connected]
        if not self._live:
            raise failures[0]
        descriptions = [each.description for each in self._live]
        self.max_model_len: int = min(each["max_model_len"] for each in descriptions)
        self.policy_version: int = descriptions[0]["version"]
        self._model: str = descriptions[0]["model"]
        self._expected = expected_shapes(self._model)
        for each in descriptions[1:]:
            if expected_shapes(each["model"]) != self._expected:
                raise RolloutInputError(f"rollout.server: {each['model']} and {self._model} are models of different shapes")
        # A run is known by the name its leader takes; names that are there already are of earlier runs.
        self._run: str | None = secrets.token_hex(8) if leader else None
        self._earlier = {each["settlement"].run for each in descriptions}
        self._syncs = 0

    @property
    def samplers(self) -> int:
        """How many servers sample; a probe has to reach each."""
        return max(1, len(self._sampling()))

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """See `rollout.engine.Engine.generate`; requests of several ranks that arrive together share a batch.

        Neighbours stay together, for those of one network share their beginnings, and so a server's prefix cache.
        """
        self._require_open("generate")
        done: dict[int, Generation] = {}
        while len(done) < len(requests):
            servers = self._sampling()
            if not servers:
                raise EngineDied("generate: the sampler server is gone; restart it and sync")
            places = [place for place in range(len(requests)) if place not in done]
            shares = dict(zip(servers, contiguous_shares(places, len(servers)), strict=True))
            _, deaths = _on_each(servers, partial(_ask, shares=shares, requests=requests, done=done))
            self._live = [each for each in self._live if each not in deaths]
            for each, death in deaths.items():
                if not self._sampling():
                    raise death
                left = sum(place not in done for place in shares[each])
                _log.warning("%s: %s; %d of its completions go to the other servers", each.state_file, death, left)
        return [done[place] for place in range(len(requests))]

    def update_weights(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Through a folder that servers and leader see. See `rollout.engine.Engine.update_weights`."""
        self._require_open("update_weights")
        self._welcome()
        pairs = checked_tensors(named_tensors, self._expected, self._model)
        if self._leader:
            largest = 4 * sum(shape.numel() for shape in self._expected.values())  # bytes, if they are float32
            with weight_files(pairs, self._sync_folder, total_bytes=largest) as folder:
                self._live = self._load(str(folder), version)
        else:
            for _ in pairs:
                pass
            instances = self._await_settlement(version)
            self._live = [each for each in self._servers if each.instance in instances]
        self.policy_version = version

    def weight_checksums(self) -> dict[str, int]:
        """See `rollout.engine.Engine.weight_checksums`; a tensor that two servers hold differently is left out."""
        self._require_open("weight_checksums")
        found, deaths = _on_each(self._sampling(), lambda each: each.call("weight_checksums"))
        self._live = [each for each in self._live if each not in deaths]
        if not found:
            raise EngineDied("weight_checksums: the sampler server is gone; restart it and sync")
        first, *others = found.values()
        return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}

    def sleep(self) -> None:
        """See `rollout.engine.Engine.sleep`. Every rank may call it; a server sleeps at the first call."""
        self._unless_gone("sleep")

    def wake(self) -> None:
        """See `rollout.engine.Engine.wake`."""
        self._unless_gone("wake")

    def restart(self) -> None:
        """Start the server anew where this rank owns it, else wait for one and have it start its engine anew if that is dead.

        The weights are unknown until a sync.
        """
        self._require_open("restart")
        for each in self._servers:
            each.disconnect()
        if self._server is not None:
            self._server.start()
        deadline = time.monotonic() + self._patience_s
        while True:
            failures = self._connect_missing()
            self._live = self._revived()
            if self._live:
                return
            if time.monotonic() > deadline:
                raise failures[0] if failures else EngineDied("restart: no sampler server could start its engine anew")
            time.sleep(0.5)

    def metrics(self) -> dict[str, float]:
        """The servers' counts since the last call by any rank, added; see `rollout.vllm.engine.VLLMEngine.metrics`."""
        total = {"prompt_tokens": 0.0, "generated_tokens": 0.0, "seconds": 0.0}
        for counts in self._unless_gone("metrics"):
            for name, value in counts.items():
                total[name] = total.get(name, 0.0) + value
        return total

    def close(self) -> None:
        """Leave the servers; end the one that this rank started."""
        if self._closed:
            return
        self._closed = True
        for each in self._servers:
            each.disconnect()
        if self._server is not None:
            self._server.stop()

    def _sampling(self) -> list[ServerConnection]:
        """The servers that hold the current policy, as far as this rank can reach them."""
        return [each for each in self._live if each.connected]

    def _welcome(self) -> None:
        """Reach whoever can be reached before a sync: servers that are new, that came back, or whose engine had died."""
        self._connect_missing()
        ready = self._revived() if self._leader else [each for each in self._servers if each.connected]
        if not ready:
            self.restart()

    def _connect_missing(self) -> list[EngineError]:
        """Dial the servers that this rank has no connection to; why the others can't be reached."""
        missing = [each for each in self._servers if not each.connected]
        return list(_on_each(missing, lambda each: each.connect(), failing=EngineError)[1].values())

    def _revived(self) -> list[ServerConnection]:
        """The connected servers whose engine runs, started anew where it had died."""
        connected = [each for each in self._servers if each.connected]
        return list(_on_each(connected, lambda each: each.call("revive"), failing=EngineError)[0])

    def _load(self, folder: str, version: int) -> list[ServerConnection]:
        """The servers that hold the weights of the folder now; every one of them knows of all."""
        death: EngineError | None = None
        for attempt in range(LOAD_ATTEMPTS):
            if attempt:
                self.restart()
            connected = [each for each in self._servers if each.connected]
            loaded, deaths = _on_each(connected, lambda each: each.call("load_files", folder, version))
            death = next(iter(deaths.values()), death)
            if loaded:
                self._syncs += 1
                settlement = Settlement(self._run or "", self._syncs, version, tuple(each.instance for each in loaded))
                return list(_on_each(list(loaded), partial(_settle, settlement=settlement))[0])
        raise death or EngineDied("update_weights: no sampler server is left; restart one and sync")

    def _await_settlement(self, version: int) -> tuple[str, ...]:
        """The instances that hold `version`, as soon as the leader has said so to any server that this rank reaches."""
        deadline = time.monotonic() + self._patience_s
        while True:
            for each in self._servers:
                if not each.connected:
                    continue
                try:
                    said: Settlement = each.call("settlement")
                except EngineDied:
                    continue
                known = said.run == self._run if self._run is not None else said.run not in self._earlier
                if known and said.number > self._syncs and said.version == version:
                    self._run, self._syncs = said.run, said.number
                    return said.instances
            if not any(each.connected for each in self._servers):
                failures = self._connect_missing()
                if time.monotonic() > deadline and failures:
                    raise failures[0]
            time.sleep(0.05)

    def _unless_gone(self, operation: str) -> list[Any]:
        """The servers' answers, without those of servers that are gone: the next ``generate`` or sync sees to them."""
        self._require_open(operation)
        return list(_on_each(self._sampling(), lambda each: each.call(operation))[0].values())

    def _require_open(self, what: str) -> None:
        if self._closed:
            raise EngineStateError(f"{what}: the engine is closed")


def _on_each(
    servers: Sequence[ServerConnection], work: Callable[[ServerConnection], T], failing: type[EngineError] = EngineDied
) -> tuple[dict[ServerConnection, T], dict[ServerConnection, EngineError]]:
    """What `work` gave for each server, all at the same time, and why others failed. Errors of another kind are raised."""

    def attempt(each: ServerConnection) -> T | EngineError:
        try:
            return work(each)
        except failing as error:
            return error

    if len(servers) > 1:
        with ThreadPoolExecutor(len(servers)) as pool:
            found = list(zip(servers, pool.map(attempt, servers), strict=True))
    else:
        found = [(each, attempt(each)) for each in servers]
    given = {each: value for each, value in found if not isinstance(value, EngineError)}
    return given, {each: value for each, value in found if isinstance(value, EngineError)}


def contiguous_shares(places: Sequence[int], count: int) -> list[Sequence[int]]:
    """`places` cut into `count` runs whose lengths differ by at most one.

    Example: ``contiguous_shares([0, 1, 2, 5, 7], 2) == [[0, 1], [2, 5, 7]]``
    """
    return [places[index * len(places) // count : (index + 1) * len(places) // count] for index in range(count)]


def _settle(server: ServerConnection, settlement: Settlement) -> None:
    server.call("settle", settlement)


def _ask(
    server: ServerConnection,
    shares: Mapping[ServerConnection, Sequence[int]],
    requests: Sequence[GenerationRequest],
    done: dict[int, Generation],
) -> None:
    """The completions of a server's share, each into `done` as soon as it has ended."""
    if share := shares[server]:
        server.generate([requests[place] for place in share], lambda index, made: done.__setitem__(share[index], made))
