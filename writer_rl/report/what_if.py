"""A change of rewards, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from writer_rl.evaluation.report import table
from writer_rl.report.rescoring import Change
from writer_rl.report.stored_run import StoredRound


def change_table(total: Change, rounds: Mapping[int, Change]) -> str:
    """Two tables: what changed in all, with what each line means, and one line a round."""
    share = f"{total.signs / total.completions:.0%} of {total.completions:,} completions"
    summary = table(
        ["", "before", "after", ""],
        [
            ["mean return", f"{total.return_before:.4f}", f"{total.return_after:.4f}", "over all completions"],
            [
                "silent positions", str(total.silent_before), str(total.silent_after),
                f"of {total.columns:,}: the returns of a group differ too little to learn from (sigma < 0.02)",
            ],
            ["other sign", "", str(total.signs), f"{share} would be pushed the other way, or now, or no more"],
            ["mean |change|", "", f"{total.advantage_shift:.3f}", "of the advantages"],
            [
                "neighbours", _number(total.neighbours_before), _number(total.neighbours_after),
                "correlation of a trajectory's advantages at t - 1 and t: high where what was inherited is credited again",
            ],
            [
                "contradicted", _number(total.contradicted_before), _number(total.contradicted_after),
                "share of completions with a sibling of the same words and an advantage more than 0.5 away",
            ],
            ["rank, returns", "", _number(total.return_rank), "Spearman: 1 keeps the order, 0 keeps nothing of it"],
            ["rank, advantages", "", _number(total.advantage_rank), ""],
        ],
        left=(0, 3),
    )  # fmt: skip
    header = ["round", "return", "then", "other sign", "silent", "then", "rank, returns", "rank, adv."]
    lines = [
        [
            str(number), f"{c.return_before:.3f}", f"{c.return_after:.3f}", f"{c.signs}/{c.completions}", str(c.silent_before),
            str(c.silent_after), _number(c.return_rank), _number(c.advantage_rank),
        ]
        for number, c in rounds.items()
    ]  # fmt: skip
    return f"{summary}\n\n{table(header, lines)}"


def differing_line(rounds: Sequence[StoredRound]) -> str | None:
    """A warning where completions replay to another report than the run wrote; None where all agree."""
    differing = sum(group.differing for each in rounds for group in each.groups)
    if not differing:
        return None
    return (
        f"note: {differing} completions replay to another report than the run recorded: the data or the environment has changed "
        "since, so that their memories and scores are today's"
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
