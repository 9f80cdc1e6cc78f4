"""What an engine has sampled in the current round, on the disk: a round that is begun again samples nothing twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rollout.engine import Engine, Generation, GenerationRequest, KeepsPrompts, interrupted_by, keeping_prompts

if TYPE_CHECKING:
    import torch


class JournaledEngine:
    """An engine whose finished calls of the current round survive the process.

    A round that is begun again (a kill, a judge that failed) asks the same requests: their seeds name run, network, trajectory,
    position, policy version and round. Calls found in the journal are answered from it; a call is stored whole or not at all, so
    that batches keep their composition. Everything else is the engine's own.

    engine: who samples; ask it directly for what belongs to no round. path: the journal. identity: what else decides a
    completion (the run's settings); calls that were stored under another are not used.

    Example: ``engine = JournaledEngine(engine, run / "rollout-00000.jsonl"); ...; engine.forget()`` once the round is saved.
    """

    def __init__(self, engine: Engine, path: Path, identity: str = "") -> None:
        self.engine = engine
        self.path = path
        self.identity = identity
        self._known = dict(_read_journal(path))
        self._unread: list[Sequence[GenerationRequest]] = []  # calls answered from the journal since prompts are kept

    @property
    def policy_version(self) -> int:
        """See `rollout.engine.Engine`."""
        return self.engine.policy_version

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """See `rollout.engine.Engine.generate`."""
        key = _digest(self.identity, requests)
        if key in self._known:
            self._unread.append(requests)
        else:
            self._read_again()
            self._known[key] = self.engine.generate(requests)
            with self.path.open("a", encoding="utf-8") as stream:
                rows = [[g.token_ids, g.text, g.logprobs, g.finish_reason] for g in self._known[key]]
                stream.write(json.dumps({"key": key, "generations": rows}) + "\n")
        return self._known[key]

    @contextmanager
    def keep_prompts(self) -> Iterator[None]:
        """See `rollout.engine.KeepsPrompts`."""
        self._unread.clear()
        with keeping_prompts(self.engine):
            yield
        self._unread.clear()

    def interruptible(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        """See `rollout.engine.Interruptible`; a call that was ended is not in the journal."""
        return interrupted_by(check, self.engine)

    def read_prompts(self, requests: Sequence[GenerationRequest]) -> None:
        """See `rollout.engine.KeepsPrompts`."""
        self._unread.append(requests)

    def _read_again(self) -> None:
        """Bring the engine to where the calls that the journal answered had left it, so that the next has the same digits."""
        if isinstance(self.engine, KeepsPrompts):
            for requests in self._unread:
                self.engine.read_prompts(requests)
        self._unread.clear()

    def forget(self) -> None:
        """The round is safe elsewhere."""
        self._known.clear()
        self.path.unlink(missing_ok=True)

    def update_weights(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """See `rollout.engine.Engine.update_weights`."""
        self.engine.update_weights(named_tensors, version)

    def weight_checksums(self) -> Mapping[str, int]:
        """See `rollout.engine.Engine.weight_checksums`."""
        return self.engine.weight_checksums()

    def sleep(self) -> None:
        """See `rollout.engine.Engine.sleep`."""
        self.engine.sleep()

    def wake(self) -> None:
        """See `rollout.engine.Engine.wake`."""
        self.engine.wake()

    def restart(self) -> None:
        """See `rollout.engine.Engine.restart`."""
        self.engine.restart()

    def metrics(self) -> dict[str, float]:
        """See `rollout.engine.Engine.metrics`; what came from the journal counts nothing."""
        return self.engine.metrics()

    def close(self) -> None:
        """See `rollout.engine.Engine.close`; the journal stays."""
        self.engine.close()


def _digest(identity: str, requests: Sequence[GenerationRequest]) -> str:
    digest = hashlib.sha256(identity.encode())
    for request in requests:
        digest.update(repr((request.prompt_ids, request.seed, request.sampling)).encode())
    return digest.hexdigest()


def _read_journal(path: Path) -> Iterator[tuple[str, list[Generation]]]:
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            call = json.loads(line)
        except ValueError:
            return  # torn by the kill
        yield (
            call["key"],
            [Generation(tuple(ids), text, tuple(logprobs), reason) for ids, text, logprobs, reason in call["generations"]],
        )
