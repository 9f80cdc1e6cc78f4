"""Teach the Writer by supervised fine-tuning (SPEC 5) on what a teacher wrote, loss on completion tokens only.

    python launch/sft.py --config configs/tiny-sft.yaml
    accelerate launch --config_file configs/accelerate/gpu2.yaml launch/sft.py --config configs/qwen2.5-3b.yaml
    python launch/sft.py --config configs/tiny-sft.yaml --seed 1 --output_dir runs/sft-1

The run directory gets config.yaml, metrics.jsonl, checkpoints/ and, at the end, final/ (a Hugging Face folder that
launch/grpo.py starts from: --model.path). The same command after an interruption goes on from the last checkpoint. Ctrl-C saves
and stops; twice stops at once.
"""

from launch.cli import add_settings, parser, run


def main(argv: list[str]) -> int:
    """Parse, show the plan or train."""
    arguments = parser(__doc__)
    arguments.add_argument("--config", default="configs/tiny-sft.yaml", help="a YAML file (configs/tiny-sft.yaml)")
    arguments.add_argument("--dry-run", action="store_true", help="print the resolved configuration and the plan, then exit")
    add_settings(arguments, "sft")
    chosen, overrides = arguments.parse_known_args(argv)
    from writer_rl.train.keeper import in_own_process

    if not chosen.dry_run and (code := in_own_process()) is not None:
        return code
    from writer_rl.config import load_config, to_yaml

    config = load_config("sft", chosen.config, overrides)
    if chosen.dry_run:
        from writer_rl.sft.plan import sft_plan

        lines = sft_plan(config)
        print(to_yaml(config))
        print("\n".join(lines))
        return 0
    from writer_rl.sft.run import train

    return train(config)


if __name__ == "__main__":
    run(main)
