"""Score recorded Writer steps: one JSON line of reward terms for each transition.

    python launch/replay.py --network N.json --completions C.jsonl --reference TEACHER.json > T.jsonl
    python launch/score.py --transitions T.jsonl

Each line of T.jsonl is an object with `actions`, `report`, `pre_state`, `post_state` and `reference` (states are
{"entries": [...], "update_edges": [...]}), as replay.py prints it. Optional: `qa_gain` (the terminal question gain of
the trajectory, null counts as 0) and `length` (its number of positions T; then `position` must be there too; without
`length` the question term is 0). What a line says is scored as it is: nothing is replayed or checked again.

Each output line has json, schema, dup, stop, valid (Eq. 19), owners, phi_macro, phi_worst, phi (Eq. 7, 16),
chain (Eq. 17), mem (Eq. 18), penalty (Eq. 21), qa_term and total (Eq. 9).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from launch.cli import UsageError, parser, run
from writer_rl.command import one_of

if TYPE_CHECKING:
    from rewards import Scorer

STATES = ("pre_state", "post_state", "reference")
KINDS = {"actions": list, "report": dict} | dict.fromkeys(STATES, dict)


def main(argv: list[str]) -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--transitions", required=True, metavar="FILE", help="JSONL of transitions; - reads stdin")
    arguments.add_argument(
        "--tokenizer", type=one_of(tokenizers), default="paper", metavar="NAME",
        help="what is a token of a content: paper (a-z, 0-9 and CJK) or unicode (every script) (default: paper)",
    )  # fmt: skip
    chosen = arguments.parse_args(argv)
    from rewards import Scorer

    scorer = Scorer(tokenizer=chosen.tokenizer)
    empty = True
    for place, line in read_lines(chosen.transitions):
        print(json.dumps(score_line(line, place, scorer)), flush=chosen.transitions == "-")
        empty = False
    if empty:
        raise UsageError(f"{chosen.transitions}: holds no transition; give what launch/replay.py prints")


def tokenizers() -> list[str]:
    """The names that --tokenizer takes."""
    from rewards.tokens import TOKENIZERS

    return list(TOKENIZERS)


def score_line(transition: dict[str, Any], place: str, scorer: Scorer) -> dict[str, Any]:
    """The reward terms of one transition, by the names that `--help` lists. UsageError names `place` and the key at fault."""
    for key, kind in KINDS.items():
        if not isinstance(transition.get(key), kind):
            remedy = "; run launch/replay.py with --reference" if key == "reference" else ""
            raise UsageError(f"{place}: `{key}` must be {'a list' if kind is list else 'an object'}{remedy}")
    for key in STATES:
        for part in ("entries", "update_edges"):
            if not isinstance(transition[key].get(part, []), list):
                raise UsageError(f"{place}: `{key}.{part}` must be a list")
    from rewards import score_step

    reward = score_step(transition["actions"], transition["report"], *(transition[key] for key in STATES), scorer)
    position, length = transition.get("position"), transition.get("length")
    if length is not None and not (_is_count(position) and _is_count(length)):
        raise UsageError(f"{place}: with `length`, both `position` and `length` must be whole numbers")
    try:
        arguments = (transition.get("qa_gain"), position, length, scorer.weights)
        parts = {name: value for name, value in asdict(reward).items() if name != "terms"}
        return {**parts, "qa_term": reward.qa_term(*arguments), "total": reward.total(*arguments)}
    except (TypeError, ValueError) as error:
        raise UsageError(f"{place}: {error}") from None


def read_lines(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """("file:line", object) for every line that is not blank. UsageError where a line is not a JSON object."""
    with nullcontext(sys.stdin.buffer) if name == "-" else open(name, "rb") as stream:
        for number, raw in enumerate(stream, start=1):
            place = f"{'stdin' if name == '-' else name}:{number}"
            if not raw.strip():
                continue
            try:
                line = json.loads(raw.decode("utf-8-sig"))
            except UnicodeDecodeError:
                raise UsageError(f"{place}: is not UTF-8 text") from None
            except (ValueError, RecursionError) as error:
                raise UsageError(f"{place}: is not JSON ({error})") from None
            if not isinstance(line, dict):
                raise UsageError(f"{place}: is not a JSON object; give one transition per line")
            yield place, line


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


if __name__ == "__main__":
    run(main)
