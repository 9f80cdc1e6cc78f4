"""One page about one run or several: settings and their differences, curves, skips, reward terms, time, evaluation, completions.

    python launch/report.py runs/demo/grpo                           # -> runs/demo/grpo/report.html
    python launch/report.py runs/0/grpo runs/1/grpo runs/2/grpo      # seeds of one experiment: means with bands -> report.html
    python launch/report.py runs/a runs/b --output a-and-b.html
    python launch/report.py runs/demo/grpo --text                    # one screen of a terminal

Runs that differ in nothing but seed, start and folder are drawn as one curve with a band of one standard deviation. Best and
worst completions link into the run's view.html, where launch/view.py has written it. An earlier file is overwritten.
"""

from __future__ import annotations

from pathlib import Path

from launch.cli import UsageError, parser, run


def main(argv: list[str]) -> None:
    arguments = parser(__doc__)
    arguments.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="run directories, of the same networks")
    arguments.add_argument("--output", type=Path, metavar="FILE.html", help="the page (default: report.html in RUN, or here)")
    arguments.add_argument("--text", action="store_true", help="print one screen instead")
    chosen = arguments.parse_args(argv)
    from memory_env.files import write_text
    from writer_rl.report.report_page import report_page, report_text
    from writer_rl.report.run_report import open_runs

    runs = open_runs(chosen.runs)
    if chosen.text:
        print(report_text(runs))
        return
    output = chosen.output or (chosen.runs[0] / "report.html" if len(runs) == 1 else Path("report.html"))
    if output.is_dir():
        raise UsageError(f"--output {output}: is a folder; name a file such as {output / 'report.html'}")
    write_text(output, report_page(runs, output))
    print(f"{output}: {len(runs)} run{'s' if len(runs) != 1 else ''}; open it in a browser")


if __name__ == "__main__":
    run(main)
