"""The paper's tables and figures, from folders that launch/evaluate.py wrote: its rows and columns, our figures and hashes.

    python launch/tables.py runs/reproduce                     # all that can be had, figures into runs/reproduce/figures
    python launch/tables.py runs --table T17 --table T22
    python launch/tables.py runs --config configs/demo.yaml --table T13

T1-T4, T9-T13, T16-T23 and Fig. 4-6. Every evaluation.json at or under RESULTS counts; which benchmark it is about, its categories
say. Where a table or a row can't be had, it says why. T13 is about the training data of --config.
"""

from __future__ import annotations

from pathlib import Path

from launch.cli import UsageError, parser, run


def main(argv: list[str]) -> None:
    arguments = parser(__doc__)
    arguments.add_argument("results", nargs="+", metavar="RESULTS", type=Path, help="folders that hold evaluations")
    arguments.add_argument("--table", action="append", default=[], metavar="T17", help="this one alone; may be repeated")
    arguments.add_argument("--config", metavar="FILE", help="whose data.train T13 describes (default: the embedded training set)")
    arguments.add_argument("--figures", type=Path, metavar="DIR", help="where figures go (default: figures in RESULTS)")
    chosen = arguments.parse_args(argv)
    from writer_rl.config import load_config
    from writer_rl.report.figures import draw_figures
    from writer_rl.report.paper_tables import TABLES, training_data
    from writer_rl.report.results import open_results
    from writer_rl.train.data import load_sources, with_teachers

    known = [*(each.number for each in TABLES), "T13"]
    unknown = sorted(set(chosen.table) - set(known))
    if unknown:
        raise UsageError(f"--table {unknown[0]}: is none of {', '.join(known)}")
    results = open_results(chosen.results)
    for each in TABLES:
        if not chosen.table or each.number in chosen.table:
            print(each.text(results), end="\n\n")
    if not chosen.table or "T13" in chosen.table:
        data = load_config("grpo", chosen.config).data
        print(
            f"T13  Training data, {', '.join(data.train)}\n{training_data(with_teachers(load_sources(data.train), data))}",
            end="\n\n",
        )
    if not chosen.table:
        for line in draw_figures(results, chosen.figures or chosen.results[0] / "figures"):
            print(line)


if __name__ == "__main__":
    run(main)
