"""Look at rollouts: one HTML file with every completion of a GRPO run's rounds, its rewards, and the others of its group.

    python launch/view.py runs/demo/grpo                                  # all rounds -> runs/demo/grpo/view.html
    python launch/view.py runs/demo/grpo --round 3 --output round3.html
    python launch/view.py runs/demo/grpo --rounds 50-60 --reward.weights.mem 0.3    # beside what other rewards would have said
    python launch/view.py runs/demo/grpo --live                           # follow a run that is going on; Ctrl-C ends it

The file needs nothing else: no network, no server, no installation; open it in any browser, send it, keep it. An address such as
view.html#3/train_real_01/2/5 (round, network, position, trajectory) opens that cell. An earlier file is overwritten.
docs/viewer.md reads one cell from observation to advantage.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from launch.cli import UsageError, parser, run

if TYPE_CHECKING:
    from writer_rl.report.stored_run import StoredRun

SECONDS_BETWEEN_LOOKS = 2.0


def main(argv: list[str]) -> None:
    arguments = parser(__doc__)
    arguments.add_argument("run", metavar="RUN", type=Path, help="a GRPO run's directory")
    which = arguments.add_mutually_exclusive_group()
    which.add_argument("--round", type=int, metavar="N", help="this round alone")
    which.add_argument("--rounds", metavar="A-B", help="a range of rounds, e.g. 10-20 or 50- (default: all)")
    arguments.add_argument("--output", type=Path, metavar="FILE.html", help="the page (default: view.html in RUN)")
    arguments.add_argument("--live", action="store_true", help="write the page again after every round; it reloads itself")
    chosen, overrides = arguments.parse_known_args(argv)
    output = chosen.output or chosen.run / "view.html"
    if output.is_dir():
        raise UsageError(f"--output {output}: is a folder; name a file such as {output / 'view.html'}")
    from writer_rl.report.stored_run import StoredRun

    rounds = str(chosen.round) if chosen.round is not None else chosen.rounds
    if not chosen.live:
        write_page(StoredRun(chosen.run), rounds, overrides, output)
        return
    follow(chosen.run, rounds, overrides, output)


def write_page(stored: StoredRun, rounds: str | None, overrides: list[str], output: Path, live: bool = False) -> None:
    """One page, and a line that says where it is."""
    from memory_env.files import write_text
    from writer_rl.report.rescoring import what_if_settings
    from writer_rl.report.stored_run import chosen_rounds
    from writer_rl.report.viewer import viewer_page
    from writer_rl.report.what_if import differing_line

    what_if = None
    if overrides:
        what_if = (" ".join(part.removeprefix("--") for part in overrides), what_if_settings(stored, overrides))
    replayed = stored.rounds(chosen_rounds(stored, rounds))
    page = viewer_page(stored, replayed, what_if, live)
    write_text(output, page)
    count = f"{len(replayed)} round{'s' if len(replayed) != 1 else ''}"
    print(f"{output}: {count}, {len(page.encode()) / 1e6:.1f} MB; open it in a browser", flush=True)
    if line := differing_line(replayed):
        print(line, file=sys.stderr)


def follow(path: Path, rounds: str | None, overrides: list[str], output: Path) -> None:
    """Write the page again whenever a round was added, until the run's last one."""
    from writer_rl.report.stored_run import StoredRun

    seen: list[int] = []
    while True:
        stored = StoredRun(path)
        # The trajectories of a round are written before its line in metrics.jsonl, so what has a line is whole.
        done = {record["round"] for record in stored.metrics()}
        stored.numbers = [number for number in stored.numbers if number in done] or stored.numbers[:1]
        ended = stored.numbers[-1] >= stored.config.trainer.steps
        if stored.numbers != seen:
            write_page(stored, rounds, overrides, output, live=not ended)
            seen = stored.numbers
        if ended:
            return
        time.sleep(SECONDS_BETWEEN_LOOKS)


if __name__ == "__main__":
    run(main)
