"""Rejection sampling: the best completions of a GRPO run as demonstrations, by the same rewards and from the same samples."""

from __future__ import annotations

from pathlib import Path

from memory_env.datafile import DataError
from writer_rl.run.rollout_files import CompletionRecord, read_rounds
from writer_rl.sft.demonstrations import Demonstration


def best_samples(run: Path) -> list[Demonstration]:
    """Of every position of every round, the completion with the highest return, where it is better than its siblings' mean.

    The first of several equal ones; none that was cut off at the length limit. Its prompt is the one it was sampled from, of
    whatever memory. Raises RunError for a folder without stored rounds, DataError where none of them teaches anything.

    Example: of returns 0.4, 0.9, 0.9, 0.2 at a position the second is learnt; of 0.5, 0.5, 0.5 none.
    """
    found = []
    for each in read_rounds(run):
        for lines in each.networks().values():
            by_position: dict[int, list[CompletionRecord]] = {}
            for line in lines:
                by_position.setdefault(line.position, []).append(line)
            for group in by_position.values():
                best = max(group, key=lambda line: line.total)
                if best.advantage > 0 and best.finish_reason != "length":
                    found.append(Demonstration(_prompt(best, group), tuple(best.fields["completion_ids"])))
    if not found:
        raise DataError(f"{run}: no completion of its rounds is better than its siblings; name a GRPO run that learns")
    return found


def _prompt(line: CompletionRecord, group: list[CompletionRecord]) -> tuple[int, ...]:
    if "prompt_ids" in line.fields:
        return tuple(line.fields["prompt_ids"])
    (holder,) = (other for other in group if other.trajectory == line.fields["prompt_of"])
    return tuple(holder.fields["prompt_ids"])
