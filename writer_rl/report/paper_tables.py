"""The paper's tables from our evaluation folders: its rows and columns, our figures and hashes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_env.actions import action_kind
from writer_rl.evaluation.report import spread, table, writer_table
from writer_rl.report.results import EVER, GROUP, LOCOMO, SHORT, SOCIAL, Results
from writer_rl.train.data import TaughtNetwork

OTHERS = {
    "T1": "Mem0, A-MEM, HippoRAG",
    "T2": "MemoBase, Mem0, Zep, MemOS, RippleMem, EverOS",
    "T4": "Mem0, A-MEM, MemOS, Zep, LightRAG",
    **dict.fromkeys(("T9", "T10", "T11", "T12", "T16", "T17", "T18", "T19", "T20", "T21"), "Mem0, A-MEM, HippoRAG"),
}
"""Rows of the paper that are other systems: nothing here runs them."""
ABLATIONS = ("w/o S2", "w/o S1", "w/o S2-group", "w/o S2-person", "full, no ASK", "full, ASK")
NO_ASK, ASK = "full, no ASK", "full, ASK"
DASH = "-"


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of the paper: its number, what it shows, and how it is made; `needs` says what a folder lacks where it is empty."""

    number: str
    caption: str
    make: Callable[[Sequence[Results]], str]
    needs: str

    def text(self, results: Sequence[Results]) -> str:
        """The table with its caption and notes, or the line that says why there is none."""
        body = self.make(results)
        head = f"{self.number}  {self.caption}"
        if not body:
            return f"{head}\n  none: {self.needs}"
        note = f"\n  {OTHERS[self.number]}: other systems, which nothing here runs" if self.number in OTHERS else ""
        return f"{head}\n{body}{note}"


def of(results: Sequence[Results], benchmark: str) -> list[Results]:
    return [each for each in results if each.benchmark == benchmark]


def signed(blocks: Sequence[tuple[Results, str]]) -> str:
    """Tables under the folder and the hashes that they stand for."""
    return "\n\n".join(f"  {each.path}: {each.document['total']} questions; {each.hashes}\n{text}" for each, text in blocks)


def main_results(results: Sequence[Results]) -> str:
    """T1: accuracy/token-F1 of baselines and Writers on every benchmark."""
    cells: dict[str, dict[str, str]] = {}
    for each in results:
        if each.benchmark not in (SOCIAL, GROUP, EVER):
            continue
        for name, variant, row in _main_rows(each):
            _put_main(cells.setdefault(name, {}), each, variant, row)
    columns = ("GM", "SM", "MeanQ", "MeanN", "EM-MC", "EM-OE", "EM-All")
    if not cells:
        return ""
    hashes = "\n".join(f"  {SHORT[each.benchmark]}: {each.path}; {each.hashes}" for each in results if each.benchmark in SHORT)
    rows = [[name, *(row.get(column, DASH) for column in columns)] for name, row in cells.items()]
    return f"{table(['Method', *columns], rows)}\n{hashes}\n  †: without ASK"


def _main_rows(each: Results) -> list[tuple[str, tuple[str, str], Mapping[str, Any]]]:
    """(row's name, (variant, Writer) among the questions, figures)."""
    found: list[tuple[str, tuple[str, str], Mapping[str, Any]]]
    found = [(row["variant"], (f"baselines/{row['variant']}", row["writer"]), row) for row in each.part("baselines")]
    found += [(f"{row['writer']}†", ("main", row["writer"]), row) for row in each.document["rows"]]
    asked = [row for row in each.part("ablations") if row["variant"] == ASK]
    return found + [(row["writer"], (f"ablations/{ASK}", row["writer"]), row) for row in asked]


def _put_main(cells: dict[str, str], each: Results, place: tuple[str, str], row: Mapping[str, Any]) -> None:
    variant, writer = place
    both = f"{row['accuracy_mean']:.1f}/{row['token_f1_mean']:.1f}"
    if each.benchmark == EVER:
        cells["EM-All"] = both
        for choice, column in ((True, "EM-MC"), (False, "EM-OE")):
            part = each.split(writer, variant)[choice]
            if part:
                cells[column] = f"{part[0]:.1f}/{part[1]:.1f}"
    else:
        cells[SHORT[each.benchmark]] = both
        if each.benchmark == SOCIAL:
            cells |= {"MeanQ": f"{row['mean_q']:.3f}", "MeanN": f"{row['mean_n']:.3f}"}


def controlled(results: Sequence[Results]) -> str:
    """T3: the controlled Writers."""
    return signed([(each, writer_table(each.document)) for each in of(results, SOCIAL)])


def by_category(benchmark: str, figure: str, last: str, later: bool = False) -> Callable[[Sequence[Results]], str]:
    """T2, T16-T21: rows are Writers (and baselines), columns the benchmark's categories and the total.

    later: of the folders after the first (the paper's second answer model), else of the first.
    """

    def make(results: Sequence[Results]) -> str:
        folders = of(results, benchmark)
        return signed([(each, one(each)) for each in (folders[1:] if later else folders[:1])])

    def one(each: Results) -> str:
        rows: list[tuple[str, Mapping[str, Any]]] = [(row["variant"], row) for row in each.part("baselines")]
        rows += [(row["writer"], row) for row in each.document["rows"]]
        columns = list(each.by_column(each.document["rows"][0], figure))
        total = "accuracy_mean" if figure == "accuracy_mean" else "token_f1_mean"
        lines = []
        for name, row in rows:
            found = each.by_column(row, figure)
            lines.append([name, *(f"{found[c][0]:.1f}" if c in found else DASH for c in columns), f"{row[total]:.2f}"])
        return table(["Method", *columns, last], lines)

    return make


def locomo(results: Sequence[Results]) -> str:
    """T4: LoCoMo by category, and all but the adversarial questions."""
    blocks = []
    for each in of(results, LOCOMO):
        shown = ("Single-hop", "Multi-hop", "Temporal", "Open-domain")
        lines = []
        for row in each.document["rows"]:
            found = each.by_column(row, "accuracy_mean")
            answerable = [found[name] for name in shown if name in found]
            whole = sum(count for _, count in answerable)
            mean = sum(value * count for value, count in answerable) / whole if whole else 0.0
            lines.append([row["writer"], *(f"{found[c][0]:.2f}" if c in found else DASH for c in shown), f"{mean:.2f}"])
        blocks.append((each, table(["Method", *shown, "ALL(Non-AD)"], lines)))
    return signed(blocks)


def locomo_counts(results: Sequence[Results]) -> str:
    """T23: correct/total of every category (mean over seeds), all questions, and without the adversarial ones."""
    blocks = []
    for each in of(results, LOCOMO):
        for row in each.document["rows"]:
            found = each.by_column(row, "accuracy_mean")
            rest = [found[name] for name in found if name != "Adversarial/AD"]
            groups = [*found.items(), ("All questions", _joined(found.values())), ("Excluding AD", _joined(rest))]
            lines = [[name, f"{value * count / 100:.0f}/{count}", f"{value:.2f}"] for name, (value, count) in groups]
            blocks.append((each, table([row["writer"], "Correct/total", "Accuracy (%)"], lines)))
    return signed(blocks)


def _joined(parts: Any) -> tuple[float, int]:
    parts = list(parts)
    whole = sum(count for _, count in parts)
    return (sum(value * count for value, count in parts) / whole if whole else 0.0), whole


def tokens(benchmark: str | None) -> Callable[[Sequence[Results]], str]:
    """T9-T12: tokens of ingesting and answering; None: the sum over benchmarks."""
    header = ["System", "Calls/units", "Ingest in.", "Ingest out.", "QA input", "Answer out.", "Total", "Avg./question"]
    keys = ("calls", "ingest_in", "ingest_out", "qa_input", "answer_out", "total")

    def make(results: Sequence[Results]) -> str:
        sums: dict[str, dict[str, float]] = {}
        for each in results:
            if each.benchmark and benchmark in (None, each.benchmark):
                for name, row in each.tokens.get("table", {}).items():
                    into = sums.setdefault(name, dict.fromkeys((*keys, "questions"), 0.0))
                    for key in keys:
                        into[key] += row[key]
                    into["questions"] += each.document["total"]
        lines = [
            [name, *(f"{row[key]:,.0f}" for key in keys), f"{row['total'] / row['questions']:,.2f}"] for name, row in sums.items()
        ]
        return table(header, lines) if lines else ""

    return make


def ablation_table(results: Sequence[Results]) -> str:
    """T22: accuracy of every configuration on every benchmark, and the difference to its best full one, for each Writer."""
    folders = {each.benchmark: each for each in results if each.part("ablations") and each.benchmark in (SOCIAL, GROUP, EVER)}
    names = [SHORT[b] for b in (SOCIAL, GROUP, EVER) if b in folders]
    writers = dict.fromkeys(row["writer"] for each in folders.values() for row in each.part("ablations"))
    blocks = []
    for writer in writers:
        figures = {SHORT[b]: best_differences(each, writer) for b, each in folders.items()}
        lines = []
        for name in ABLATIONS:
            pairs = [figures[column].get(name) for column in names]
            cells = [spread(pair[0], None) if pair else DASH for pair in pairs]
            lines.append([name, *cells, *(f"{pair[1]:+.2f}" if pair else DASH for pair in pairs)])
        blocks.append(table([writer, *(f"{n} Acc." for n in names), *(f"Δ {n}" for n in names)], lines))
    notes = "\n".join(f"  {SHORT[b]}: {each.path}; {each.hashes}" for b, each in folders.items())
    return "\n\n".join(blocks) + f"\n{notes}" if blocks else ""


def best_differences(each: Results, writer: str) -> dict[str, tuple[float, float]]:
    """Configuration -> (accuracy, difference to the better of the two full ones)."""
    rows = {row["variant"]: row["accuracy_mean"] for row in each.part("ablations") if row["writer"] == writer}
    best = max((rows[name] for name in (NO_ASK, ASK) if name in rows), default=0.0)
    return {name: (value, value - best) for name, value in rows.items()}


def training_data(networks: Sequence[TaughtNetwork]) -> str:
    """T13: messages, segments, questions and the teacher's actions of each training network."""
    lines, sums = [], [0] * 6
    for each in networks:
        kinds = [action_kind(action) for output in each.teacher.actions for action in output]
        counts = [
            len(each.network.messages),
            each.length,
            len(each.network.questions),
            *(kinds.count(k) for k in ("ADD", "UPDATE", "NOOP")),
        ]
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        lines.append([each.network.network_id, *map(str, counts)])
    lines.append([f"Total, {len(networks)} networks", *map(str, sums)])
    return table(["Network ID", "Messages", "Writing segments", "QA", "ADD", "UPDATE", "NOOP"], lines)


SM_NEEDED = "no evaluation of SocialMemBench, or of a set with its categories Q1-Q9, lies there"
GM_NEEDED = "no evaluation of GroupMemBench lies there; launch/prepare.py read, then launch/evaluate.py --networks"
EM_NEEDED = "no evaluation of EverMemBench lies there; launch/prepare.py read, then launch/evaluate.py --networks"
LOCOMO_NEEDED = "no evaluation of LoCoMo lies there; launch/prepare.py read, then launch/evaluate.py --networks"
TOKENS_NEEDED = (
    "no tokens.json lies there for it: tokens are counted of served, local and endpoint Writers and of endpoint answers"
)
SECOND = "only one evaluation of it lies there; this table is of a second answer model, in a folder of its own"

TABLES = (
    PaperTable("T1", "Main results, Acc./token-F1 (%)", main_results, SM_NEEDED),
    PaperTable("T2", "EverMemBench by behaviour, accuracy (%)", by_category(EVER, "accuracy_mean", "Weighted total"), EM_NEEDED),
    PaperTable("T3", "Controlled Writer results", controlled, SM_NEEDED),
    PaperTable("T4", "LoCoMo by category, accuracy (%)", locomo, LOCOMO_NEEDED),
    PaperTable("T9", "Tokens over all benchmarks", tokens(None), TOKENS_NEEDED),
    PaperTable("T10", "Tokens, SocialMemBench", tokens(SOCIAL), TOKENS_NEEDED),
    PaperTable("T11", "Tokens, GroupMemBench", tokens(GROUP), TOKENS_NEEDED),
    PaperTable("T12", "Tokens, EverMemBench", tokens(EVER), TOKENS_NEEDED),
    PaperTable("T16", "GroupMemBench by category, accuracy (%)", by_category(GROUP, "accuracy_mean", "Total"), GM_NEEDED),
    PaperTable("T17", "SocialMemBench Q1-Q9, accuracy (%)", by_category(SOCIAL, "accuracy_mean", "Total"), SM_NEEDED),
    PaperTable("T18", "GroupMemBench by category, token-F1 (%)", by_category(GROUP, "token_f1_mean", "Total"), GM_NEEDED),
    PaperTable("T19", "SocialMemBench Q1-Q9, token-F1 (%)", by_category(SOCIAL, "token_f1_mean", "Total"), SM_NEEDED),
    PaperTable("T20", "GroupMemBench, second answer model (%)", by_category(GROUP, "accuracy_mean", "Total", True), SECOND),
    PaperTable("T21", "SocialMemBench, second answer model (%)", by_category(SOCIAL, "accuracy_mean", "Total", True), SECOND),
    PaperTable(
        "T22",
        "Ablations, accuracy (%) and Δ to the best full",
        ablation_table,
        "no ablations.json; launch/evaluate.py --ablations",
    ),
    PaperTable("T23", "LoCoMo, counts by category", locomo_counts, LOCOMO_NEEDED),
)
