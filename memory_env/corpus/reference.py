"""What a teacher writes about a planned conversation: the complete one, and one that under-writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory_env.corpus.dice import Dice
from memory_env.corpus.plan import Event, Plan
from memory_env.network import Network
from memory_env.state import MemoryState
from memory_env.step import Report, step

Actions = list[dict[str, Any]]


@dataclass(frozen=True)
class BiasRates:
    """How often the under-writing teacher leaves something out, by family of fact, and how often it overlooks a change.

    Real teachers err like this: they keep what people say of themselves and miss what is said about others. An overlooked
    fact is never recorded; if it changes later, the change is recorded as new with probability `late_add`, else left out too.
    """

    self: float = 0.0
    stance: float = 0.6
    observation: float = 0.7
    reported: float = 0.7
    decision: float = 0.1
    relation: float = 0.6
    norm: float = 0.6
    exception: float = 0.6
    join: float = 0.3
    leave: float = 0.3
    update: float = 0.4
    late_add: float = 0.5


@dataclass(frozen=True)
class TeacherRun:
    """A teacher's run over a network: actions, reports and states, one per position."""

    actions: tuple[Actions, ...]
    reports: tuple[Report, ...]
    states: tuple[MemoryState, ...]


def complete_actions(network: Network, plan: Plan) -> TeacherRun:
    """What a perfect Writer does: every event in message order, NOOP where there is none."""
    return _replay(network, plan, [list(position.events) for position in plan.positions])


def biased_actions(network: Network, plan: Plan, seed: int, rates: BiasRates | Mapping[str, float] | None = None) -> TeacherRun:
    """What the under-writing teacher does; `rates` may be a mapping of some of the fields of `BiasRates`.

    Consistent: an UPDATE always cites a record this teacher has written.
    """
    bias = rates if isinstance(rates, BiasRates) else BiasRates(**(rates or {}))
    dice = Dice(seed * 7_919 + 13)
    known: set[int] = set()
    kept: list[list[Event]] = []
    for position in plan.positions:
        chosen = []
        for event in position.events:
            family = plan.facts[event.fact].family
            if event.fact in known:
                keep = not dice.chance(bias.update)
            elif event.operation == "ADD":
                keep = not dice.chance(getattr(bias, family))
            else:
                keep = dice.chance(bias.late_add)
            if keep:
                known.add(event.fact)
                chosen.append(event)
        kept.append(chosen)
    return _replay(network, plan, kept)


def _replay(network: Network, plan: Plan, kept: list[list[Event]]) -> TeacherRun:
    state = MemoryState.empty()
    entry: dict[int, str] = {}
    all_actions, reports, states = [], [], []
    for segment, events in zip(network.segments(), kept, strict=True):
        actions: Actions = []
        for event in events:
            if event.fact in entry:
                # The content first: what a small model has just written leads it to the record that says nearly the same.
                actions.append({"action": "UPDATE", "content": event.content, "entry_id": entry[event.fact]})
            else:
                fact = plan.facts[event.fact]
                who = {"owner": fact.owner, "source": fact.source, "layer": fact.layer, "utype": fact.utype}
                actions.append({"action": "ADD", **who, "content": event.content})
        if not actions:
            actions = [{"action": "NOOP"}]
        state, report = step(state, segment, actions)
        if report.errors:
            raise AssertionError(
                f"{network.network_id} position {segment.position}: the plan breaks the memory's rules: {report.errors}"
            )
        for event, created in zip(events, report.created_ids, strict=True):
            entry[event.fact] = created
        all_actions.append(actions)
        reports.append(report)
        states.append(state)
    return TeacherRun(tuple(all_actions), tuple(reports), tuple(states))
