"""Stored rounds as the data that the viewer draws: plain lists and numbers, every text once, every memory as its additions.

The script of the page knows three kinds of objects: `index` (all returns and advantages: what the grids need at once), one object
a network (messages and reference records) and one a round (everything a cell shows when it opens). Names are short because there
are thousands of cells; `cell_data` lists them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Generic, TypeVar

import numpy as np

from memory_env.actions import max_actions
from memory_env.records import Edge, Record
from memory_env.replay import Completion, WrittenStep
from memory_env.state import MemoryState
from memory_env.trajectory import ReferenceState
from rewards import RewardWeights, Scorer
from rewards.alignment import edge_pairs, record_pairs
from writer_rl.grpo.advantages import MAX_ADVANTAGE, MIN_SIGMA
from writer_rl.grpo.credit import Comparison
from writer_rl.report.rescoring import Rescorer, stored_scores
from writer_rl.report.stored_run import StoredGroup, StoredRound
from writer_rl.run.rollout_files import CompletionRecord
from writer_rl.train.data import TaughtNetwork

T = TypeVar("T")
CONSTANTS = {"minSigma": MIN_SIGMA, "maxAdvantage": MAX_ADVANTAGE}
APPLIED, REJECTED, NOOP, BEYOND, BOTH = "applied", "rejected", "noop", "beyond", "applied as ADD"


def index_data(rounds: Sequence[StoredRound], own: Rescorer, what_if: Rescorer | None) -> list[dict[str, Any]]:
    """Of each round and network what its grid shows: returns, advantages, sigma, marks of faults, and those under `what_if`.

    Under another credit than aligned also what was compared and its mean.
    """
    return [{"n": each.number, "networks": [_grid(group, own, what_if) for group in each.groups]} for each in rounds]


def _grid(group: StoredGroup, own: Rescorer, what_if: Rescorer | None) -> dict[str, Any]:
    returns, advantages, deviations, _ = stored_scores(group)
    found = {
        "id": group.network_id,
        "ret": _rounded(returns),
        "adv": _rounded(advantages),
        "sigma": _rounded(deviations),
        "gains": [_number(gain) for gain in group.gains],
        "marks": [[_mark(line, group) for line in row] for row in group.records],
    }
    if own.credit not in ("aligned", "local"):
        compared = own(group).comparison
        found |= {"val": _rounded(compared.values), "mean": _rounded(compared.means)}
    if what_if is not None:
        scores = what_if(group)
        found |= {"ret2": _rounded(scores.returns), **_compared(scores.comparison, "2")}
    return found


def _compared(comparison: Comparison, mark: str) -> dict[str, Any]:
    names = {"val": "values", "mean": "means", "sigma": "deviations", "adv": "advantages"}
    return {f"{short}{mark}": _rounded(getattr(comparison, name)) for short, name in names.items()}


def _mark(line: CompletionRecord, group: StoredGroup) -> str:
    """One letter of what to look at: j no JSON, e errors, l cut off, = the same words as an earlier sibling."""
    if not line.report.get("json_valid"):
        return "j"
    if line.finish_reason == "length":
        return "l"
    if line.report.get("errors"):
        return "e"
    earlier = (other[line.position] for other in group.records if other[line.position].trajectory < line.trajectory)
    return "=" if any(other.text == line.text for other in earlier) else ""


def network_data(network: TaughtNetwork, window: int | None) -> dict[str, Any]:
    """Messages by position, and the reference records with the position that adds them.

    A record is [id, owner, source, layer, utype, content, position]; an edge [old id, new id].
    """
    records: dict[str, tuple[Any, ...]] = {}
    for position, state in enumerate(network.teacher.states):
        for record in state.derived():
            records.setdefault(record.entry_id, _record(record, position))
    return {
        "id": network.network.network_id,
        "segments": [
            {"session": s.session_id, "ts": s.ts, "messages": [[m.speaker, m.ts, m.content] for m in s.messages]}
            for s in network.network.segments(window)
        ],
        "reference": list(records.values()),
        "edges": [[edge.old, edge.new] for edge in network.teacher.states[-1].edges()],
    }


def round_data(group: StoredGroup, weights: RewardWeights, tokenizer: str, what_if: Rescorer | None) -> dict[str, Any]:
    """The cells of one group [G][T], the records they made, and its questions."""
    scorer = Scorer(weights, tokenizer)
    texts: _Table[str] = _Table()
    records: _Table[tuple[Any, ...]] = _Table()
    other = what_if(group).rewards if what_if else None
    cells = [
        [
            cell_data(line, made, group, scorer, texts, records, what_if.scorer if what_if else None)
            | ({"r2": _reward(asdict(other[g][line.position]))} if other else {})
            for line, made in zip(row, steps, strict=True)
        ]
        for g, (row, steps) in enumerate(zip(group.records, group.steps, strict=True))
    ]
    return {
        "id": group.network_id,
        "texts": texts.items,
        "records": records.items,
        "cells": cells,
        "questions": [_question(question) for question in group.questions],
    }


def cell_data(
    line: CompletionRecord,
    made: WrittenStep[Completion],
    group: StoredGroup,
    scorer: Scorer,
    texts: _Table[str],
    records: _Table[tuple[Any, ...]],
    what_if: Scorer | None = None,
) -> dict[str, Any]:
    """Everything of one completion.

    x: place of its text; acts: the actions, where JavaScript would read the text otherwise; o: what became of each, as [status,
    reason, place of its record]; new, up: places of the records it made, and [old, new] of its UPDATEs; r: reward terms;
    pairs, ep: [record, reference id, kappa] and [old, new, reference old, reference new, weight] in the memory after it, and
    pairs2, ep2 where `what_if` matches them otherwise;
    tk, pt: tokens of completion and prompt; v: policy; fork: whose memory it was written from, where not its own.
    """
    reference = group.taught.teacher.states[line.position]
    place = {record.entry_id: records.place(_record(record, record.turn_created)) for record in made.post_state.derived()}
    new = [place[entry_id] for entry_id in made.report.created_ids]
    found: dict[str, Any] = {
        "x": texts.place(line.text),
        "o": _outcomes(made, place),
        "new": new,
        "up": [[place[edge.old], place[edge.new]] for edge in _new_edges(made)],
        "r": _reward(line.reward),
        "errors": list(line.report.get("errors", ())),
        "long": bool(line.report.get("too_many_actions")),
        **_matches(made.post_state, reference, scorer, place),
        "fin": line.finish_reason,
        "tk": line.tokens,
        "pt": line.fields.get("prompt_tokens") or len(line.fields.get("prompt_ids", ())),
        "om": line.fields.get("omitted_heads", 0),
        "v": line.policy_version,
        "seed": str(line.fields.get("seed", "")),  # more digits than a JavaScript number holds
        "lag": line.fields.get("lag", 0),
    }
    if what_if is not None:
        again = _matches(made.post_state, reference, what_if, place)
        found |= {f"{name}2": pairs for name, pairs in again.items() if pairs != found[name]}
    if line.forked_from is not None:
        found["fork"] = line.forked_from
    if made.report.json_valid and not _plain_json(line.text, made.actions):
        found["acts"] = made.actions
    return found


def _matches(
    made: MemoryState, reference: MemoryState | ReferenceState, scorer: Scorer, place: Mapping[str, int]
) -> dict[str, list[list[object]]]:
    """The matched records and UPDATE edges of two memories, as `cell_data` describes them."""
    return {
        "pairs": [[place[p.predicted], p.reference, round(p.kappa, 4)] for p in record_pairs(made, reference, scorer)],
        "ep": [
            [*(place.get(i, -1) for i in p.predicted), *p.reference, round(p.weight, 4)]
            for p in edge_pairs(made, reference, scorer)
        ],
    }


def _outcomes(made: WrittenStep[Completion], place: Mapping[str, int]) -> list[list[object]]:
    """[status, reason, place of the record or -1] of each action, in order."""
    reasons: dict[int, str] = {}
    for error in made.report.errors:
        head, _, reason = error.partition(": ")
        if head.startswith("action ") and head[7:].isdigit():
            reasons[int(head[7:])] = reason
    budget = max_actions(len(made.segment.messages))
    created = iter(made.report.created_ids)
    whole_rejected = bool(made.report.errors) and not made.report.created_ids
    found: list[list[object]] = []
    for number, action in enumerate(made.actions):
        reason = reasons.get(number, "")
        kind = action.get("action") if isinstance(action, dict) else None
        if number >= budget:
            found.append([BEYOND, f"the budget is {budget} actions", -1])
        elif reason and not reason.endswith("applied as ADD"):
            found.append([REJECTED, reason, -1])
        elif kind == "NOOP":
            found.append([NOOP, "", -1])
        else:
            entry_id = next(created, None)
            if entry_id is None:
                found.append([REJECTED, reason or ("strict: another action is invalid" if whole_rejected else "not applied"), -1])
            else:
                found.append([BOTH if reason else APPLIED, reason, place[entry_id]])
    return found


def _new_edges(made: WrittenStep[Completion]) -> tuple[Edge, ...]:
    return made.post_state.edges(len(made.pre_state.edges()))


def _plain_json(text: str, actions: Sequence[object]) -> bool:
    """Whether JavaScript's JSON.parse reads the same actions: Python's parser takes control characters and NaN too."""

    def refuse(name: str) -> Any:
        raise ValueError(name)

    try:
        return json.loads(text, parse_constant=refuse)["actions"] == actions
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _question(question: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in question.items() if key not in ("schema", "network_id")}


def _record(record: Record, position: int) -> tuple[Any, ...]:
    return record.entry_id, record.owner, record.source, record.layer, record.utype, record.content, position


def _reward(reward: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {key: _number(each) for key, each in value.items()} if isinstance(value, dict) else _number(value)
        for name, value in reward.items()
    }


def _number(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value


def _rounded(values: np.ndarray) -> list:
    return [_rounded(row) for row in values] if values.ndim > 1 else [round(float(v), 6) for v in values]


class _Table(Generic[T]):
    """Items, each once, by their place."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self._places: dict[T, int] = {}

    def place(self, item: T) -> int:
        found = self._places.get(item)
        if found is None:
            found = self._places[item] = len(self.items)
            self.items.append(item)
        return found
