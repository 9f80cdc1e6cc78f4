"""An option: members whom the memory has nothing about, because they said little or were forgotten.

    reward:
      modules: [rewards.coverage]
      terms: {coverage: 0.1}
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from memory_env.records import Record
from rewards.terms import reward_term


class Memory(Protocol):
    """The part of `memory_env.MemoryState` that terms over whole memories read."""

    @property
    def roster(self) -> Sequence[str]: ...

    def derived(self) -> tuple[Record, ...]: ...

    def heads(self, owner: str | None = None) -> tuple[Record, ...]: ...


def coverage(owners: Iterable[str], members: Sequence[str]) -> float:
    """The share of the members who own at least one record; 1 without members.

    Example: records of Ann, Ann and GROUP, members Ann, Bob and Cleo: 1 / 3.
    """
    known = set(owners)
    return sum(member in known for member in members) / len(members) if members else 1.0


@reward_term("coverage")
def coverage_term(actions: object, report: object, pre_state: Memory, post_state: Memory, reference: object) -> float:
    """`coverage` of the memory after the step, over everybody who has spoken so far; System 1 doesn't count."""
    return coverage((record.owner for record in post_state.derived()), post_state.roster)
