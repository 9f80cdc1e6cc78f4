"""What every completion and every terminal question of a round leaves on the disk, and in which version of which form.

`trajectories/round-000001.jsonl` has one line per completion (`COMPLETION_SCHEMA`), `questions/round-000001.jsonl` one line per
terminal question (`QUESTION_SCHEMA`). Memories are not stored: they follow from the texts through the environment.

A completion, form 2 (ids and log-probabilities shortened; null where nothing was measured):

    {"schema": "writer-rl/completion/2", "network_id": "net_1", "trajectory": 1, "position": 0, "length": 5,
     "policy_version": 4,                 which policy wrote it
     "seed": 123456789,                   of its random stream (rollout/seeds.py)
     "prompt_ids": [5, 9],                or "prompt_of": 0, the trajectory whose prompt at this position is the same
     "prompt_tokens": 2, "omitted_heads": 0,
     "completion_ids": [17, 2], "logprobs": [-0.1, -0.2], "text": "{...}", "finish_reason": "stop",
     "actions": [...], "report": {...},   the parsed list verbatim, and what became of it (memory_env.Report)
     "reward": {"valid": 1.0, "mem": 0.8, "penalty": 0.0, "terms": {}, ...},   local terms of Eq. 9 (rewards.StepReward)
     "qa_gain": 0.25,                     R_QA of its trajectory, in [-1, 1]
     "return": 0.81, "sigma": 0.11, "silent": false, "advantage": 1.2}         Eq. 9, 23-24

Two keys stand only where they say something: "forked_from": 0 (the completion was written from the memory that trajectory 0 had
before this position, not from that of its own trajectory: how local credit re-rolls) and "lag": 1 (updates between the policy
that wrote it and the one that learnt from it). Form 1 is the same without "schema", "length", "seed", "prompt_tokens", "sigma"
and "silent"; it is read too. A reader ignores keys it does not know; a change of meaning is a new number.

A question, form 1. System 1 evidence stands once, since all trajectories have the same; so do equal evidences with their verdict.

    {"schema": "writer-rl/question/1", "network_id": "net_1", "question_id": "q3", "category": "Q1", "question": "Where ...?",
     "gold": "Leeds", "options": {}, "error": null,
     "messages": [{"content": "I moved", "owner": "Ann", "source": "Ann", "ts": "2025-01-02", "entry_id": "m7"}],
     "exchanges": [
       {"track": "s1", "trajectories": [0, 1], "rows": [],
        "answer": "nothing recorded", "option": "", "correct": false, "score": 0.0, "reason": "..."},
       {"track": "both", "trajectories": [1],
        "rows": [{"owner": "Ann", "chains": [[{"content": "lives in Leeds", ...}]], "said": [], "fallback": null}],
        "answer": "Leeds", "option": "", "correct": true, "score": 1.0, "reason": "..."}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from writer_rl.run.directory import RunError

COMPLETION_SCHEMA = "writer-rl/completion/2"
QUESTION_SCHEMA = "writer-rl/question/1"


@dataclass(frozen=True, slots=True)
class CompletionRecord:
    """One line of `trajectories/*.jsonl`; what form 1 lacks is None.

    Example: ``record.reward["mem"]``, ``record.advantage``; ``record.fields["completion_ids"]`` is what has no name here.
    """

    network_id: str
    trajectory: int
    position: int
    policy_version: int
    text: str
    finish_reason: str
    actions: Sequence[object]
    report: Mapping[str, Any]
    reward: Mapping[str, Any]
    qa_gain: float | None
    total: float
    advantage: float
    forked_from: int | None = None
    fields: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def tokens(self) -> int:
        """Sampled tokens, the stop token included."""
        return len(self.fields.get("completion_ids", ()))

    @classmethod
    def from_dict(cls, line: Mapping[str, Any], where: str) -> CompletionRecord:
        """RunError where `line` is no completion of a form known here."""
        schema = line.get("schema", COMPLETION_SCHEMA)
        if schema != COMPLETION_SCHEMA:
            raise RunError(
                f"{where}: is in the form {schema!r}, this version reads {COMPLETION_SCHEMA}; use the version that wrote it"
            )
        try:
            return cls(
                network_id=_typed(line, "network_id", str),
                trajectory=_typed(line, "trajectory", int),
                position=_typed(line, "position", int),
                policy_version=_typed(line, "policy_version", int),
                text=_typed(line, "text", str),
                finish_reason=_typed(line, "finish_reason", str),
                actions=_typed(line, "actions", list),
                report=_typed(line, "report", dict),
                reward=_typed(line, "reward", dict),
                qa_gain=line.get("qa_gain"),
                total=float(_typed(line, "return", (int, float))),
                advantage=float(_typed(line, "advantage", (int, float))),
                forked_from=line.get("forked_from"),
                fields=line,
            )
        except KeyError as error:
            raise RunError(
                f"{where}: is no completion of a GRPO run: {error.args[0]}; name a run directory of launch/grpo.py"
            ) from None


@dataclass(frozen=True, slots=True)
class RoundRecords:
    """A round as it is on the disk. `cut`: the last line was torn by a kill and is left out.

    Example: ``read_round(Path("runs/demo/grpo"), 3).completions[0].advantage``
    """

    number: int
    completions: tuple[CompletionRecord, ...]
    questions: tuple[Mapping[str, Any], ...] = ()
    cut: bool = False

    def networks(self) -> dict[str, list[CompletionRecord]]:
        """The completions of each network, by trajectory and position."""
        found: dict[str, list[CompletionRecord]] = {}
        for record in self.completions:
            found.setdefault(record.network_id, []).append(record)
        return {name: sorted(records, key=lambda r: (r.trajectory, r.position)) for name, records in found.items()}


def round_numbers(run: Path) -> list[int]:
    """The rounds whose completions are stored, ascending; RunError where there are none."""
    if not run.is_dir():
        raise RunError(f"{run}: no such run directory")
    found = sorted(int(file.stem.removeprefix("round-")) for file in (run / "trajectories").glob("round-[0-9]*.jsonl"))
    if not found:
        raise RunError(f"{run}: holds no trajectories/round-*.jsonl; name the directory of a GRPO run that has finished a round")
    return found


def read_round(run: Path, number: int) -> RoundRecords:
    """One stored round. RunError for a round that is not there, a line that is no completion, or another form of it.

    A torn last line is left out; a damaged one elsewhere is an error, since the columns would be compared without it.
    """
    path = run / "trajectories" / f"round-{number:06d}.jsonl"
    if not path.is_file():
        numbers = round_numbers(run)
        raise RunError(f"{run}: has no round {number}; there are {_ranges(numbers)}")
    lines, cut = _lines(path)
    completions = tuple(CompletionRecord.from_dict(line, where) for where, line in lines)
    if not completions:
        raise RunError(f"{path}: holds no completion; name another round")
    asked = run / "questions" / path.name
    questions = [line for _, line in _lines(asked)[0]] if asked.is_file() else []
    return RoundRecords(number, completions, tuple(q for q in questions if q.get("schema") == QUESTION_SCHEMA), cut)


def read_rounds(run: Path, numbers: list[int] | None = None) -> Iterator[RoundRecords]:
    """Stored rounds in order; all of them by default."""
    for number in round_numbers(run) if numbers is None else numbers:
        yield read_round(run, number)


def _lines(path: Path) -> tuple[list[tuple[str, dict[str, Any]]], bool]:
    """("file, line n", object) of each line, and whether the last one was cut off."""
    raw = path.read_bytes().split(b"\n")  # a text may hold U+2028 and its like: no line ends there
    found: list[tuple[str, dict[str, Any]]] = []
    for number, line in enumerate(raw, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            value = json.loads(line)
        except ValueError:
            if number == len(raw):
                return found, True
            raise RunError(f"{where}: is not JSON; the file is damaged, leave this round out") from None
        if not isinstance(value, dict):
            raise RunError(f"{where}: is no JSON object; the file is damaged, leave this round out")
        found.append((where, value))
    return found, False


def _typed(line: Mapping[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    value = line.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise KeyError(f"`{key}` is missing" if key not in line else f"`{key}` is {type(value).__name__}")
    return value


def _ranges(numbers: list[int]) -> str:
    """Example: [1, 2, 3, 7] is "1-3, 7"."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
