"""Score recorded Writer steps: one JSON line of reward terms for each transition; or a whole run under other rewards.

    python launch/replay.py --network N.json --completions C.jsonl --reference TEACHER.json > T.jsonl
    python launch/score.py --transitions T.jsonl

Each line of T.jsonl is an object with `actions`, `report`, `pre_state`, `post_state` and `reference` (states are
{"entries": [...], "update_edges": [...]}), as replay.py prints it. Optional: `qa_gain` (the terminal question gain of
the trajectory, null counts as 0) and `length` (its number of positions T; then `position` must be there too; without
`length` the question term is 0). What a line says is scored as it is: nothing is replayed or checked again.

Each output line has json, schema, dup, stop, valid (Eq. 19), owners, phi_macro, phi_worst, phi (Eq. 7, 16),
chain (Eq. 17), mem (Eq. 18), penalty (Eq. 21), qa_term and total (Eq. 9).

    python launch/score.py --run runs/demo/grpo --reward.weights.mem 0.3 --reward.weights.qa 0.5
    python launch/score.py --run runs/demo/grpo --rounds 1-10 --reward.weights '{threshold: 0.7}' --json

What other reward settings would have made of a GRPO run's stored completions: returns, advantages and their signs, silent
positions, rank correlations, over all rounds and for each. No model is loaded and no question is asked again (the gains are
the stored ones). Without a setting it checks that scoring today gives what the run had. launch/view.py takes the same settings.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launch.cli import UsageError, parser, run
from writer_rl.command import one_of

if TYPE_CHECKING:
    from rewards import Scorer

STATES = ("pre_state", "post_state", "reference")
KINDS = {"actions": list, "report": dict} | dict.fromkeys(STATES, dict)


def main(argv: list[str]) -> None:
    arguments = parser(__doc__)
    source = arguments.add_mutually_exclusive_group(required=True)
    source.add_argument("--transitions", metavar="FILE", help="JSONL of transitions; - reads stdin")
    source.add_argument(
        "--run", metavar="RUN", type=Path, help="a GRPO run's directory; any --reward.key value changes its rewards"
    )
    arguments.add_argument(
        "--tokenizer", type=one_of(tokenizers), default="paper", metavar="NAME",
        help="what is a token of a content: paper (a-z, 0-9 and CJK) or unicode (every script) (default: paper); with --run: "
        "--reward.tokenizer",
    )  # fmt: skip
    arguments.add_argument("--rounds", metavar="A-B", help="with --run: these rounds alone, e.g. 3 or 10-20 (default: all)")
    arguments.add_argument("--json", action="store_true", help="with --run: one JSON object a line instead of tables")
    chosen, overrides = arguments.parse_known_args(argv)
    if chosen.run is not None:
        score_run(chosen.run, chosen.rounds, overrides, chosen.json)
        return
    if overrides or chosen.rounds or chosen.json:
        arguments.error(f"unrecognized arguments: {' '.join(overrides) or '--rounds and --json belong to --run'}")
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


def score_run(path: Path, rounds: str | None, overrides: list[str], as_json: bool) -> None:
    """Print what the overridden rewards change in a stored run."""
    from writer_rl.report.rescoring import rescored, what_if_settings
    from writer_rl.report.stored_run import StoredRun, chosen_rounds
    from writer_rl.report.what_if import change_table, differing_line

    stored = StoredRun(path)
    settings = what_if_settings(stored, overrides)
    replayed = stored.rounds(chosen_rounds(stored, rounds))
    total, each = rescored(replayed, settings)
    if as_json:
        for number, change in (("all", total), *each.items()):
            print(json.dumps({"round": number, **asdict(change)}))
        return
    print(change_table(total, each))
    if line := differing_line(replayed):
        print(line, file=sys.stderr)


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

    before, after, reference = (transition[key] for key in STATES)
    reward = score_step(transition["actions"], transition["report"], before, after, reference, scorer)
    position, length = transition.get("position"), transition.get("length")
    if length is not None and not (_is_count(position) and _is_count(length)):
        raise UsageError(f"{place}: with `length`, both `position` and `length` must be whole numbers")
    try:
        arguments: tuple[Any, ...] = (transition.get("qa_gain"), position, length, scorer.weights)
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


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


if __name__ == "__main__":
    run(main)
