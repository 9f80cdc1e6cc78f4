"""Evaluation during training: the Writer's greedy memories of validation networks, measured without answerer or judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory_env.datafile import DataError
from rollout.engine import Engine
from rollout.sampler import write_memories
from rollout.writer_prompt import WriterPrompt
from writer_rl.config import ConfigError, TrainingConfig
from writer_rl.evaluation.memory_metrics import COMPONENTS, memory_metrics
from writer_rl.train.data import TaughtNetwork, load_sources, with_teachers
from writer_rl.train.distributed import World
from writer_rl.train.prompt import require_fitting

WEIGHTS = {name: "steps" for name in (*COMPONENTS, "total")} | {
    "question_score": "questions",
    "update_accuracy": "reference_updates",
    "attribution_accuracy": "matched_contents",
}
"""What each mean is a mean over, so that the means of several ranks can be joined."""

KEYS = tuple(f"evaluation/{name}" for name in (*WEIGHTS, *sorted(set(WEIGHTS.values())), "records"))


class Validation:
    """Writes the networks' memories with the current policy and measures them.

    networks: with their references; each rank takes its share. window, strict: those of `rollout.sampler.sample_groups`.

    Example: ``Validation(networks, prompt, 2048, world)(engine)["evaluation/phi"]``
    """

    keys = KEYS

    def __init__(
        self,
        networks: Sequence[TaughtNetwork],
        prompt: WriterPrompt,
        max_new_tokens: int,
        world: World,
        *,
        window: int | None = None,
        strict: bool = False,
    ) -> None:
        self._mine = networks[world.rank :: world.size]
        self._prompt = prompt
        self._max_new_tokens = max_new_tokens
        self._world = world
        self._window = window
        self._strict = strict

    def __call__(self, engine: Engine) -> dict[str, float | None]:
        """All of `keys`; None for a mean over nothing. Collective."""
        found: dict[str, float] = {}
        if self._mine:
            networks = [each.network for each in self._mine]
            written = write_memories(
                networks, engine, self._prompt, self._max_new_tokens, window=self._window, strict=self._strict
            )
            references = {each.network.network_id: each.teacher for each in self._mine}
            questions = {network.network_id: network.questions for network in networks}
            found = memory_metrics(written.values(), references, questions)
        return joined_means(self._world.gather(found))


def open_validation(config: TrainingConfig, prompt: WriterPrompt, world: World) -> Validation | None:
    """What `evaluation.every` asks for; None where it is 0.

    Raises DataError without networks, ConfigError for a metric that is not measured.
    """
    settings, data = config.evaluation, config.data
    if not settings.every:
        return None
    networks = load_sources(data.validation)[: settings.max_networks]
    if not networks:
        raise DataError("data.validation: no networks, and evaluation.every asks for them; set it to 0 or name some")
    if settings.metric not in KEYS:
        raise ConfigError(f"evaluation.metric: {settings.metric!r} is not measured; there are {', '.join(KEYS)}")
    require_fitting(prompt, networks, data.window)
    taught, limit = with_teachers(networks, data), config.rollout.max_new_tokens
    return Validation(taught, prompt, limit, world, window=data.window, strict=data.strict)


def joined_means(parts: Sequence[Mapping[str, float]]) -> dict[str, float | None]:
    """The metrics over everything, from those of disjoint parts (`memory_metrics`), under `KEYS`.

    Example: a mean of 0.5 over 2 questions and one of 1.0 over 6 join to 0.875.
    """
    counts = {name: sum(part.get(name, 0) for part in parts) for name in {*WEIGHTS.values(), "records"}}
    joined: dict[str, float | None] = {}
    for name, count in WEIGHTS.items():
        total = sum(part[name] * part[count] for part in parts if name in part)
        joined[name] = total / counts[count] if counts[count] and any(name in part for part in parts) else None
    return {f"evaluation/{name}": value for name, value in {**joined, **counts}.items()}
