"""What a rollout leaves behind: one step per writing position, T steps per trajectory, G trajectories per network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memory_env import MemoryState, Report
from rollout.engine import FinishReason


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """One writing position of one trajectory.

    ``prompt_ids`` and ``completion_ids`` are what the engine read and sampled (stop token included), ``logprobs``
    the raw log-probabilities of ``completion_ids``. ``actions`` is the parsed list verbatim, [] for an output that
    is none; ``report`` what became of it between ``pre_state`` and ``post_state``. ``omitted_heads`` counts current
    records that did not fit into the prompt.

    Example: a malformed output is ``Step(..., text="Sure!", actions=[], report=<json_valid False>,
        post_state=<messages only>)``.
    """

    position: int
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish_reason: FinishReason
    actions: Sequence[object]
    report: Report
    pre_state: MemoryState
    post_state: MemoryState
    omitted_heads: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Trajectory:
    """All T steps of one way of writing a network's memory; ``index`` is its place in the group.

    Example: ``sample_groups([network], engine, ...)[network.network_id][3].steps[0].text``
    """

    network_id: str
    index: int
    policy_version: int
    steps: tuple[Step, ...]

    @property
    def final_state(self) -> MemoryState:
        """M_T, the memory after the last position."""
        return self.steps[-1].post_state


def completion_records(group: Sequence[Trajectory]) -> Iterator[dict[str, Any]]:
    """One JSON object per completion of a group, ready for ``trajectories/*.jsonl``; add the rewards before writing.

    The states are not stored: ``launch/replay.py`` recomputes them from the texts. A prompt that an earlier
    trajectory of the group carries at the same position is named instead: ``"prompt_of": 0`` for trajectory 0's.

    Example:
        {"network_id": "net_1", "policy_version": 4, "trajectory": 1, "position": 0, "prompt_of": 0,
         "completion_ids": [17, 2], "logprobs": [-0.1, -0.2], "text": "{}", "finish_reason": "stop", "actions": [],
         "report": {...}, "omitted_heads": 0}
    """
    first: dict[tuple[int, tuple[int, ...]], int] = {}
    for trajectory in group:
        for step in trajectory.steps:
            origin = first.setdefault((step.position, step.prompt_ids), trajectory.index)
            shared = origin != trajectory.index
            yield {
                "network_id": trajectory.network_id,
                "policy_version": trajectory.policy_version,
                "trajectory": trajectory.index,
                "position": step.position,
                **({"prompt_of": origin} if shared else {"prompt_ids": list(step.prompt_ids)}),
                "completion_ids": list(step.completion_ids),
                "logprobs": list(step.logprobs),
                "text": step.text,
                "finish_reason": step.finish_reason,
                "actions": step.actions,
                "report": step.report.to_dict(),
                "omitted_heads": step.omitted_heads,
            }
