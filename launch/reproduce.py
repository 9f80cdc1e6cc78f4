"""The whole chain, over seeds: SFT, GRPO, and the controlled evaluation of both beside the teacher and no memory at all.

  python launch/reproduce.py --seeds 0 1 2 --output_dir runs/reproduce          # make reproduce
  python launch/reproduce.py --sft configs/tiny_writer --seeds 0 --output_dir runs/demo   # make demo
  python launch/reproduce.py --rows configs/controls.yaml:core --output_dir runs/controls   # make controls
  python launch/reproduce.py --output_dir runs/mine --row 'no KL=--trainer.kl_coef 0'       # a control of one's own

Every set of networks to test on has a table of its own; a --row is one more GRPO run per seed, from the same SFT.
Every stage is one of the other scripts, run as it is printed. Stopped at any moment, the same command goes on: a stage that
is done is not run again, and one that was under way resumes from its own checkpoint.
"""

from __future__ import annotations

import json
import shlex
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from launch.cli import ROOT, UsageError, parser, run
from launch.stages import clock, read_mark, stage
from writer_rl.evaluation.controls import (
    FIXED,
    RL,
    ControlRow,
    RowError,
    pairs_of,
    parse_row,
    read_rows,
    results_document,
    results_table,
)

if TYPE_CHECKING:
    from writer_rl.evaluation.run_records import RunRecord

SETS = ("corpus:heldout", "corpus:unseen")
T = TypeVar("T")
FORMAT = {"accuracy": ".2f", "reward": ".3f", "question score": ".3f"}


def arguments(argv: list[str]) -> Namespace:
    """The parsed command line."""
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="training seeds (0 1 2)")
    options.add_argument("--sft", help="start GRPO from this checkpoint; without it SFT is run for each seed")
    options.add_argument("--engine", choices=("hf", "vllm"), default="hf", help="of the rollouts (hf)")
    options.add_argument("--sft-config", default="configs/tiny-sft.yaml", help="(%(default)s)")
    options.add_argument("--grpo-config", default="configs/demo.yaml", help="(%(default)s)")
    options.add_argument("--evaluate-config", default="configs/demo.yaml", help="(%(default)s)")
    options.add_argument("--steps", type=int, help="GRPO rounds (the configuration's)")
    options.add_argument("--sets", nargs="+", default=list(SETS), metavar="SET", help=f"to test on ({' '.join(SETS)})")
    options.add_argument("--sft-settings", default="", metavar="'--KEY VALUE ...'", help="over the SFT configuration")
    options.add_argument(
        "--grpo-settings", default="", metavar="'--KEY VALUE ...'", help="over the GRPO configuration, in every row"
    )
    options.add_argument(
        "--row", action="append", default=[], metavar="'NAME=--KEY VALUE ...'", help="a GRPO run of other settings"
    )
    options.add_argument(
        "--rows", action="append", default=[], metavar="FILE[:GROUP]", help="rows of a file, such as configs/controls.yaml:core"
    )
    options.add_argument("--output_dir", required=True, help="where everything goes")
    chosen = options.parse_args(argv)
    if len(set(chosen.seeds)) != len(chosen.seeds):
        raise UsageError(f"--seeds {' '.join(map(str, chosen.seeds))}: a seed is given twice")
    if min(chosen.seeds) < 0:
        raise UsageError(f"--seeds {' '.join(map(str, chosen.seeds))}: a seed is a whole number from 0")
    if chosen.steps is not None and chosen.steps < 1:
        raise UsageError(f"--steps {chosen.steps}: at least one round")
    try:
        rows = [ControlRow(RL), *map(parse_row, chosen.row), *(row for file in chosen.rows for row in read_rows(file))]
    except RowError as error:
        raise UsageError(str(error)) from None
    names = [row.name for row in rows]
    if len({row.folder for row in rows}) != len(rows) or set(names) & set(FIXED):
        taken = ", ".join((*FIXED, RL))
        raise UsageError(f"--row {', '.join(names[1:])}: every row needs a name of its own; {taken} are taken")
    chosen.rows = rows
    for option in ("sft", "sft_config", "grpo_config", "evaluate_config"):
        path = getattr(chosen, option)
        if path and not (ROOT / path).exists() and not (option == "sft_config" and chosen.sft):
            raise UsageError(f"--{option.replace('_', '-')} {path}: is not there")
    return chosen


def check_settings(chosen: Namespace) -> None:
    """Every stage's settings, before hours go into the stages before it. UsageError names the row at fault."""
    from writer_rl.config import ConfigError, load_config

    for option in ("sft_settings", "grpo_settings"):
        try:
            shlex.split(getattr(chosen, option))
        except ValueError as error:
            raise UsageError(f"--{option.replace('_', '-')}: {error}") from None
    runs = [("SFT", "sft", shlex.split(chosen.sft_settings))] if not chosen.sft else []
    for row in chosen.rows:
        title = "GRPO" if row.name == RL else f"row {row.name}"
        shared = shlex.split(chosen.grpo_settings) if row.script == "grpo" else []
        runs.append((title, row.script, shared + row.arguments("sft", "grpo")))
    for title, script, settings in runs:
        try:
            load_config(script, chosen.grpo_config if script == "grpo" else chosen.sft_config, settings)
        except ConfigError as error:
            raise UsageError(f"{title}: {error}") from None


def seed_lines(evaluation: dict, memory: dict, seeds: list[int]) -> list[str]:
    """One line per seed: accuracy, mean reward and question score from SFT to RL, and whether all three are better."""
    rows = {row["writer"]: row for row in evaluation["rows"]}
    lines = []
    for place, seed in enumerate(seeds):
        before, after = (_figures(rows[name], memory.get(name), evaluation["total"], place) for name in ("SFT", RL))
        worse = [name for name in before if after[name] <= before[name]]
        changes = ", ".join(f"{name} {before[name]:{FORMAT[name]}} -> {after[name]:{FORMAT[name]}}" for name in before)
        points = after["accuracy"] - before["accuracy"]
        verdict = f"NOT better in {', '.join(worse)}" if worse else "better"
        lines.append(f"seed {seed}: {changes} ({points:+.2f} points): {verdict}")
    return lines


def _figures(row: dict, memory: dict | None, total: int, place: int) -> dict[str, float]:
    """What a Writer's seed reached; one checkpoint may stand for all seeds."""

    def of(seeds: list[T]) -> T:
        return seeds[place] if len(seeds) > place else seeds[0]

    figures = {"accuracy": 100 * of(row["correct"]) / total}
    if memory:
        figures |= {"reward": of(memory["seeds"])["total"], "question score": of(memory["seeds"])["question_score"]}
    return figures


def main(argv: list[str]) -> None:
    """Run the stages and print the result."""
    chosen = arguments(argv)
    check_settings(chosen)
    output = (ROOT / chosen.output_dir).resolve() if not Path(chosen.output_dir).is_absolute() else Path(chosen.output_dir)
    times: dict[str, float] = {}
    checkpoints: dict[str, list[str]] = {name: [] for name in ("SFT", *(row.name for row in chosen.rows))}
    for seed in chosen.seeds:
        folder = output / f"seed{seed}"
        start = str(ROOT / chosen.sft) if chosen.sft else ""
        if not start:
            command = ["launch/sft.py", "--config", chosen.sft_config, "--seed", str(seed), "--output_dir", str(folder / "sft")]
            times[f"SFT, seed {seed}"] = stage(f"SFT, seed {seed}", output, command + shlex.split(chosen.sft_settings))
            start = model(folder / "sft")
        if start not in checkpoints["SFT"]:
            checkpoints["SFT"].append(start)
        for row in chosen.rows:
            run_folder, title = folder / row.folder, f"{'GRPO' if row.name == RL else row.name}, seed {seed}"
            command = [f"launch/{row.script}.py", "--seed", str(seed), "--output_dir", str(run_folder)]
            if row.script == "grpo":
                command += ["--config", chosen.grpo_config, "--model.path", start, "--rollout.engine", chosen.engine]
                command += ["--trainer.steps", str(chosen.steps)] if chosen.steps else []
                command += shlex.split(chosen.grpo_settings)
            else:
                command += ["--config", chosen.sft_config]
            times[title] = stage(title, output, command + row.arguments(start, str(folder / ControlRow(RL).folder)))
            checkpoints[row.name].append(model(run_folder))
    for tested in chosen.sets:
        folder = evaluation_folder(output, tested)
        command = ["launch/evaluate.py", "--config", chosen.evaluate_config, "--data.heldout", tested, "--output", str(folder)]
        for name, folders in checkpoints.items():
            command += ["--writer", f"{name}={','.join(folders)}"]
        command += ["--writer", "teacher", "--writer", "none"]
        times[folder.name] = stage(folder.name, output, command, quiet=True, grows=True)
    finish(output, chosen, times)


def evaluation_folder(output: Path, tested: str) -> Path:
    """Where the evaluation on a set goes: `evaluation-heldout` for corpus:heldout, by the last name of a path."""
    return output / f"evaluation-{Path(tested.removeprefix('corpus:')).name}"


def model(folder: Path) -> str:
    """The model that a run ends with: its best checkpoint where it was validated, else its newest."""
    from writer_rl.evaluation.checkpoint_writer import checkpoint_folder

    best = folder / "checkpoints" / "best"
    return str(checkpoint_folder(str(best if best.exists() else folder)))


def finish(output: Path, chosen: Namespace, times: dict[str, float]) -> None:
    """A table for each set, what each seed did, where the curves are, how long it took; all of it in results.json too."""
    from memory_env.files import write_text
    from writer_rl.evaluation import report
    from writer_rl.evaluation.paired import paired_table

    folders = {tested: evaluation_folder(output, tested) for tested in chosen.sets}
    for tested, folder in folders.items():
        evaluation = json.loads((folder / "evaluation.json").read_text())
        memory = folder / "memory.json"
        print(f"\n== {tested}\n\n{report.writer_table(evaluation)}\n\n{report.category_table(evaluation)}\n")
        metrics = json.loads(memory.read_text()) if memory.is_file() else {}
        if metrics:
            print(f"{report.memory_table(metrics)}\n")
        print("\n".join(seed_lines(evaluation, metrics, chosen.seeds)))
        print(f"\n{paired_table(pairs_of(folder))}\n")
        print(f"results: {folder / 'evaluation.json'}")
    costs = {row.name: _cost(output, row, chosen.seeds) for row in chosen.rows}
    trained = [*([] if chosen.sft else [("SFT", "sft")]), *((row.name, row.folder) for row in chosen.rows)]
    runs = [_record(name, seed, output, output / f"seed{seed}" / folder) for name, folder in trained for seed in chosen.seeds]
    results = results_document(chosen.rows, chosen.seeds, folders, costs, runs)
    write_text(output / "results.json", json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    if len(chosen.rows) > 1:
        print(f"\n== all rows ({output / 'results.json'})\n\n{results_table(results)}\n")
    for seed in chosen.seeds:
        grpo = output / f"seed{seed}" / ControlRow(RL).folder
        curves = [file for file in (grpo / "reward_curves.png", grpo / "metrics.jsonl") if file.is_file()]
        print(f"curves of seed {seed}: {', '.join(map(str, curves))}")
    print("wall time: " + ", ".join(f"{name} {clock(seconds)}" for name, seconds in times.items()), end="")
    print(f"; together {clock(sum(times.values()))}")


def _record(writer: str, seed: int, output: Path, folder: Path) -> RunRecord:
    """Of the run in `folder`; its configuration without the folders of this machine."""
    from writer_rl.evaluation.run_records import run_record

    return run_record(writer, seed, folder, Path(model(folder)), (output, ROOT))


def _cost(output: Path, row: ControlRow, seeds: list[int]) -> dict[str, float]:
    """CPU seconds of a row's runs, start and validation included, and the tokens they were trained on; all seeds together."""
    title = "GRPO" if row.name == RL else row.name
    marks = [read_mark(output, f"{title}, seed {seed}") for seed in seeds]
    records = [
        json.loads(line)
        for seed in seeds
        for line in (output / f"seed{seed}" / row.folder / "metrics.jsonl").read_text().splitlines()
    ]
    tokens = sum(record.get("sft/tokens") or record.get("policy/tokens") or 0 for record in records)
    return {"cpu_seconds": sum(mark["cpu_seconds"] for mark in marks if mark), "tokens": tokens}


if __name__ == "__main__":
    run(main)
