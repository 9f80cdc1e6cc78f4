"""Train the Writer with position-aligned GRPO (docs/training.md), from an SFT checkpoint.

    python launch/grpo.py --config configs/demo.yaml
    accelerate launch --config_file configs/accelerate/gpu2.yaml launch/grpo.py --config configs/qwen2.5-3b.yaml
    python launch/grpo.py --config configs/demo.yaml --trainer.lr 1e-4 --output_dir runs/hotter

The run directory gets config.yaml, metrics.jsonl, trajectories/, checkpoints/ (each with model/, a Hugging Face folder) and
reward_curves.png. The same command after an interruption goes on from the last checkpoint. Ctrl-C saves and stops; twice stops
at once.
"""

from launch.cli import add_settings, parser, run


def main(argv: list[str]) -> int:
    """Parse, show the plan or train."""
    arguments = parser(__doc__)
    arguments.add_argument("--config", default="configs/demo.yaml", help="a YAML file (configs/demo.yaml)")
    arguments.add_argument("--dry-run", action="store_true", help="print the resolved configuration and the plan, then exit")
    add_settings(arguments, "grpo")
    chosen, overrides = arguments.parse_known_args(argv)
    from writer_rl.train.keeper import in_own_process

    if not chosen.dry_run and (code := in_own_process()) is not None:
        return code
    from writer_rl.config import load_config, to_yaml

    config = load_config("grpo", chosen.config, overrides)
    if chosen.dry_run:
        from writer_rl.grpo.plan import plan_lines

        lines = plan_lines(config)
        print(to_yaml(config))
        print("\n".join(lines))
        return 0
    from writer_rl.train.distributed import prepare_environment

    prepare_environment()
    from writer_rl.grpo.run import train

    return train(config)


if __name__ == "__main__":
    run(main)
