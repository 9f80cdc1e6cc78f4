"""One real cell read from observation to advantage, as the section of docs/viewer.md that says it with figures.

python -m writer_rl.report.worked_cell docs/viewer.md docs/example/run     # write the section again
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev

from memory_env.files import write_text
from memory_env.records import Record
from memory_env.text import one_line
from rewards import RewardWeights, Scorer
from rewards.alignment import RecordPair, edge_pairs, record_pairs
from writer_rl.grpo.advantages import MAX_ADVANTAGE, MIN_SIGMA
from writer_rl.grpo.plan import reward_settings
from writer_rl.report.stored_run import StoredGroup, StoredRun
from writer_rl.run.rollout_files import CompletionRecord

BEGIN, END = "<!-- worked cell: made by writer_rl.report.worked_cell -->", "<!-- end of worked cell -->"


@dataclass(frozen=True)
class Cell:
    """A completion with its group. Example: ``Cell(round=1, group=group, g=3, t=2).line.text``"""

    round: int
    group: StoredGroup
    g: int
    t: int

    @property
    def line(self) -> CompletionRecord:
        """The stored completion."""
        return self.group.records[self.g][self.t]


def section(run: StoredRun) -> str:
    """The section, between its marks."""
    cell = teaching_cell(run)
    return "\n".join([BEGIN, *_paragraphs(cell, run), END])


def teaching_cell(run: StoredRun) -> Cell:
    """A cell that shows most: an UPDATE, a memory partly like the teacher's, an advantage well off 0; the first of the best."""
    cells = [
        Cell(each.number, group, g, t)
        for each in run.rounds()
        for group in each.groups
        for g, row in enumerate(group.records)
        for t in range(len(row))
    ]

    def shows(cell: Cell) -> tuple[bool, bool, bool, bool, int, float]:
        made, size = cell.group.steps[cell.g][cell.t], abs(cell.line.advantage)
        partly = 0 < cell.line.reward["phi_worst"] < 1
        return bool(made.report.updated_from), partly, bool(made.pre_state.derived()), size >= 0.5, made.report.applied, size

    return max(cells, key=shows)  # max keeps the first of equals


def _paragraphs(cell: Cell, run: StoredRun) -> Iterator[str]:
    weights, _ = reward_settings(run.config.reward)
    made, line = cell.group.steps[cell.g][cell.t], cell.line
    yield f"Round {cell.round}, network `{cell.group.network_id}`, trajectory {cell.g}, position {cell.t}"
    yield f"(`view.html#{cell.round}/{cell.group.network_id}/{cell.t}/{cell.g}`)."
    yield "\n**What it reads.** The new messages:\n"
    yield from (f"> {one_line(m.speaker)}: {one_line(m.content)}" for m in made.segment.messages)
    heads = made.pre_state.heads()
    yield f"\nand the memory before, {_count(len(heads), 'current record')}" + (":\n" if heads else ".")
    yield from (f"- {_record(record)}" for record in heads)
    yield "\n**What it writes**, and what becomes of it:\n"
    yield f"```\n{one_line(line.text)}\n```\n"
    applied = f"{made.report.applied} of {made.report.attempted} actions are applied"
    yield applied + (": " + "; ".join(made.report.errors) if made.report.errors else ".")
    yield "\n**How near the memory comes to the teacher's.** " + _matching(cell, weights, run)
    yield "\n**What it is worth.**\n"
    yield from _sums(cell, weights)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _record(record: Record) -> str:
    who = record.owner if record.owner == record.source else f"{record.owner} (said by {record.source})"
    return f"{one_line(who)}, {record.layer}: {one_line(record.content)}"


def _matching(cell: Cell, weights: RewardWeights, run: StoredRun) -> str:
    made, reference = cell.group.steps[cell.g][cell.t], cell.group.taught.teacher.states[cell.t]
    scorer = Scorer(weights, run.config.reward.tokenizer)
    pairs = record_pairs(made.post_state, reference, scorer)
    ours = {record.entry_id: record for record in made.post_state.derived()}
    theirs = {record.entry_id: record for record in reference.derived()}
    owners = sorted({r.owner for r in ours.values()} | {r.owner for r in theirs.values()})
    lines = [
        "Every record of an owner, older ones included, is matched\nwith at most one of the teacher's (Eq. 16):\n",
        "| owner | pairs (κ) | ours | theirs | F |",
        "| --- | --- | --- | --- | --- |",
    ]
    scores = []
    for owner in owners:
        own = [pair for pair in pairs if ours[pair.predicted].owner == owner]
        counts = [sum(r.owner == owner for r in side.values()) for side in (ours, theirs)]
        total = math.fsum(pair.kappa for pair in own)
        scores.append(2 * total / sum(counts))
        kappas = " + ".join(f"{pair.kappa:.3f}" for pair in own) or "0"
        lines.append(
            f"| {one_line(owner)} | {kappas} | {counts[0]} | {counts[1]} | 2 · {total:.3f} / {sum(counts)} = {scores[-1]:.3f} |"
        )
    macro, worst = math.fsum(scores) / len(scores), min(scores)
    phi = weights.macro * macro + weights.worst * worst
    lines.append(f"\nΦ = {weights.macro} · {macro:.4f} (mean) + {weights.worst} · {worst:.4f} (worst) = {phi:.4f} (Eq. 7).")
    lines.append(_example(pairs, cell, ours, theirs, weights))
    edges, wanted = len(made.post_state.edges()), len(reference.edges())
    matched = math.fsum(pair.weight for pair in edge_pairs(made.post_state, reference, scorer))
    if edges and wanted:
        chain = 2 * matched / (edges + wanted)
        lines.append(
            f"Chains (Eq. 17): {_count(edges, 'UPDATE')} against {wanted}, 2 · {matched:.3f} / {edges + wanted} = {chain:.4f}."
        )
    else:
        chain = float(not edges and not wanted)
        lines.append(f"Chains (Eq. 17): {_count(edges, 'UPDATE')} against {wanted}: {chain:.4f}.")
    mem = weights.state * phi + weights.chain * chain
    lines.append(f"R_mem = {weights.state} · {phi:.4f} + {weights.chain} · {chain:.4f} = {mem:.4f} (Eq. 18).")
    return "\n".join(lines)


def _example(
    pairs: tuple[RecordPair, ...], cell: Cell, ours: dict[str, Record], theirs: dict[str, Record], weights: RewardWeights
) -> str:
    """Eq. 13 of one new record that is not word for word, if there is one."""
    new = set(cell.group.steps[cell.g][cell.t].report.created_ids)
    inexact = [pair for pair in pairs if pair.predicted in new and pair.kappa < 1]
    if not inexact:
        return ""
    pair = inexact[0]
    a, b = ours[pair.predicted].content, theirs[pair.reference].content
    return (
        f'One of the pairs: "{one_line(a)}" against "{one_line(b)}", κ = {weights.token} · F1 of their words + '
        f"{weights.sequence} · their sequence ratio = {pair.kappa:.3f} (Eq. 13).\n"
    )


def _sums(cell: Cell, weights: RewardWeights) -> Iterator[str]:
    line, last = cell.line, cell.group.taught.length - 1
    reward = line.reward
    yield (
        f"- R_valid = {weights.json} · {reward['json']:.3f} + {weights.schema} · {reward['schema']:.3f} + {weights.dup} · "
        f"{reward['dup']:.3f} + {weights.stop} · {reward['stop']:.3f} = {reward['valid']:.4f} (Eq. 19)"
    )
    gain = line.qa_gain or 0.0
    term = weights.qa * weights.gamma ** (last - cell.t) * gain
    yield f"- penalty P = {reward['penalty']:.2f} (Eq. 21)"
    yield f"- question term: {weights.qa} · {weights.gamma}^{last - cell.t} · {gain:+.4f} = {term:.4f}"
    yield (
        f"- return r = {weights.valid} · {reward['valid']:.4f} + {weights.mem} · {reward['mem']:.4f} + {reward['penalty']:.2f} + "
        f"{term:.4f} = {line.total:.4f} (Eq. 9)"
    )
    column = [row[cell.t].total for row in cell.group.records]
    mean, sigma = fmean(column), pstdev(column)
    yield f"- the column's returns: {', '.join(f'{value:.4f}' for value in column)}; mean {mean:.4f}, σ {sigma:.4f}"
    if sigma < MIN_SIGMA:
        yield f"- advantage A = 0: σ is below {MIN_SIGMA}, the column is silent (Eq. 24)"
        return
    value = max(-MAX_ADVANTAGE, min(MAX_ADVANTAGE, (line.total - mean) / sigma))
    yield f"- advantage A = ({line.total:.4f} - {mean:.4f}) / {sigma:.4f} = {value:.4f} (Eq. 23-24)"


def replaced(document: str, text: str) -> str:
    """`document` with `text` in place of the section between the marks. ValueError where it has none."""
    if BEGIN not in document or END not in document:
        raise ValueError(f"the document lacks the marks {BEGIN} and {END}")
    return document[: document.index(BEGIN)] + text + document[document.index(END) + len(END) :]


if __name__ == "__main__":
    page, folder = map(Path, sys.argv[1:3])
    write_text(page, replaced(page.read_text(encoding="utf-8"), section(StoredRun(folder))))
