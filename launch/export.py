"""Export a trained Writer as a plain Hugging Face folder (safetensors, tokenizer, chat template, generation config, model card).

    python launch/export.py --checkpoint runs/demo/grpo --output exported/my-writer
    python launch/export.py --checkpoint runs/demo/grpo/checkpoints/best --output exported/best
    python launch/export.py --checkpoint runs/sft/checkpoints/000300 --output exported/sft --dtype bfloat16
    python launch/export.py --checkpoint runs/sft-lora --adapter --output exported/adapter

AutoModelForCausalLM loads the folder; without --dtype its logits are the checkpoint's. An adapter (model.lora) is merged unless
--adapter asks for it apart: a few megabytes that PeftModel.from_pretrained puts on the base model.
"""

from pathlib import Path

from launch.cli import empty_output, parser, run


def main(argv: list[str]) -> None:
    """Parse and export."""
    arguments = parser(__doc__)
    arguments.add_argument(
        "--checkpoint",
        required=True,
        help="a checkpoint, a run directory (its newest one), RUN/checkpoints/best, or a run's final/",
    )
    arguments.add_argument("--output", required=True, help="a new folder")
    arguments.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), help="of the weights (the checkpoint's own)")
    arguments.add_argument("--prompt", type=Path, help="the prompt file to put beside it (the run's own)")
    arguments.add_argument("--adapter", action="store_true", help="the adapter apart (peft's format), not merged into the model")
    chosen = arguments.parse_args(argv)
    output = empty_output(chosen.output)
    from writer_rl.export.folder import export_checkpoint

    print(export_checkpoint(Path(chosen.checkpoint), output, chosen.dtype, chosen.prompt, chosen.adapter))


if __name__ == "__main__":
    run(main)
