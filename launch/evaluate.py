"""Evaluate Writers under frozen retrieval, answering and judging (docs/evaluation.md).

Every Writer writes the memory of each held-out conversation, all questions are answered from it and judged, and a table like
the paper's Table 3 is printed. Interrupted, the same command continues.

python launch/evaluate.py --config configs/evaluate.yaml --writer teacher --writer none --output runs/evaluation
python launch/evaluate.py --config configs/evaluate.yaml --writer SFT=runs/0/sft,runs/1/sft --writer RL=runs/0/grpo,runs/1/grpo \\
    --writer teacher --ablations --grid --full-evidence --baselines --output runs/evaluation
python launch/evaluate.py --config runs/demo/grpo/config.yaml                        # a training run's own checkpoint
python launch/evaluate.py --compare runs/a/evaluation.json runs/b/evaluation.json    # one table of several results
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from launch.cli import UsageError, add_settings, empty_output, parser, run

if TYPE_CHECKING:
    from writer_rl.config import EvaluationConfig

TABLES = ("ablations", "grid", "full_evidence", "baselines")


def main(argv: list[str]) -> int | None:
    arguments = parser(__doc__)
    arguments.add_argument("--config", help="a configuration file; any --section.key value overrides it")
    arguments.add_argument(
        "--writer",
        action="append",
        default=[],
        metavar="NAME=SOURCE[,SOURCE2,...]",
        help="a row: checkpoint folders (one per training seed), 'teacher', 'none' (no derived memory), served:MODEL (a trained "
        "Writer that a server serves) or endpoint:MODEL (any language model); default: that of the configured output_dir",
    )
    arguments.add_argument(
        "--networks", action="append", default=[], metavar="PATH", help="evaluate these instead (any known format)"
    )
    arguments.add_argument("--ablations", action="store_true", help="also: without S1, S2, its GROUP or PERSON half, with ASK")
    arguments.add_argument("--grid", action="store_true", help="also: S1 top-k 5/10/20 x S2 k 2/4/6, with a plot")
    arguments.add_argument("--full-evidence", action="store_true", help="also: every message and record, without any budget")
    arguments.add_argument("--baselines", action="store_true", help="also: BM25, dense retrieval (if installed), full context")
    arguments.add_argument("--output", help="where the files go (default: the configured output_dir)")
    arguments.add_argument(
        "--compare", nargs="+", type=Path, metavar="FILE", help="print one table of evaluation.json files, and end"
    )
    arguments.add_argument("--dry-run", action="store_true", help="print the resolved configuration and the plan, and end")
    add_settings(arguments, "evaluate")
    chosen, overrides = arguments.parse_known_args(argv)
    if chosen.compare:
        from writer_rl.evaluation import report

        document = report.merge([(str(path), report.read_evaluation(path)) for path in chosen.compare])
        print(f"{report.writer_table(document)}\n\n{report.category_table(document)}")
        return None
    from writer_rl.config import load_config, to_yaml
    from writer_rl.evaluation.run import EvaluationPlan, evaluate
    from writer_rl.evaluation.writers import WriterSpec

    config = load_config("evaluate", chosen.config, overrides)
    output = _output(chosen.output, config)
    writers = chosen.writer or [_own_writer(config)]
    plan = EvaluationPlan(
        tuple(WriterSpec.parse(text) for text in writers),
        tuple(name for name in TABLES if getattr(chosen, name)),
        tuple(chosen.networks),
    )
    if chosen.dry_run:
        from writer_rl.evaluation.setup import judging_line

        judged = judging_line(config)
        print(to_yaml(config))
        print("\n".join(f"writer {spec.name}: {', '.join(spec.sources)}" for spec in plan.writers))
        print(f"tables: {', '.join(('writers', *plan.tables))}\noutput: {output}\n{judged}")
        return None
    outcome = evaluate(config, plan, output)
    print("\n\n".join(outcome.tables))
    print(f"\n{', '.join(sorted(outcome.documents))} and questions.jsonl are in {output}")
    return None


def _output(option: str | None, config: EvaluationConfig) -> Path:
    """--output has to be empty, or an evaluation to continue."""
    from writer_rl.config import resolve
    from writer_rl.evaluation.run import FROZEN_FILE

    if option is None:
        return resolve(config.output_dir)
    path = Path(option)
    return path if (path / FROZEN_FILE).is_file() else empty_output(path)


def _own_writer(config: EvaluationConfig) -> str:
    from writer_rl.config import resolve

    folder = resolve(config.output_dir)
    source = folder if (folder / "checkpoints").is_dir() else resolve(config.model.path)
    if not source.is_dir():
        raise UsageError(f"--writer: none named, and {folder} holds no checkpoint; name one, or 'teacher'")
    return f"{folder.name}={source}"


if __name__ == "__main__":
    run(main)
