"""Say what fits on which GPUs, before renting them. Pure arithmetic from the model's shape (docs/scaling.md).

Without --gpus: the fewest 24, 40 and 80 GiB GPUs (--card: others) for each way to train. With --gpus: where the bytes of one such
run go. Nothing is loaded and no GPU is needed.

  python launch/plan.py                                  # Qwen2.5-3B, the table
  python launch/plan.py --model path/to/model --gpus 2 --zero 3 --card 48 --card h100
  python launch/plan.py --config configs/qwen2.5-3b.yaml --model qwen2.5-3b --gpus 8
"""

from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from dataclasses import replace

from launch.cli import parser, run
from writer_rl.model.shape import ModelShape
from writer_rl.run.plan import GIB, USABLE, RunShape, fewest_gpus, plan

CARDS = (24, 40, 80)
NAMED = {
    "l4": 24, "a10": 24, "4090": 24, "5090": 32, "a6000": 48, "l40s": 48, "a100": 80, "h100": 80, "h200": 141, "b200": 180,
}  # fmt: skip
PARTS = ("weights", "gradients", "optimizer", "reference", "buffers", "activations", "sampler")
WAYS = [
    ("ZeRO-1", {"zero": 1}),
    ("ZeRO-2", {"zero": 2}),
    ("ZeRO-2, 8-bit AdamW", {"zero": 2, "eight_bit": True}),
    ("ZeRO-2, optimizer on CPU", {"zero": 2, "offload_optimizer": True}),
    ("ZeRO-3", {"zero": 3}),
    ("ZeRO-3, all on CPU", {"zero": 3, "offload_optimizer": True, "offload_parameters": True}),
    ("LoRA of rank 16, ZeRO-2", {"zero": 2, "lora_rank": 16}),
    ("LoRA of rank 16, ZeRO-3", {"zero": 3, "lora_rank": 16}),
]


def arguments(argv: list[str]) -> Namespace:
    """The parsed command line."""
    options = parser(__doc__)
    options.add_argument("--model", default="qwen2.5-3b", help="model folder, config.json, or qwen2.5-{0.5b,1.5b,3b,7b}")
    options.add_argument("--config", help="a GRPO run's YAML file: its settings in place of the options below, and its disk")
    options.add_argument("--gpus", type=int, help="show one run on this many GPUs (of all nodes together)")
    options.add_argument(
        "--card", type=_card, action="append", metavar="GIB|NAME", help=f"a GPU's size, or one of {', '.join(NAMED)}; repeatable"
    )
    options.add_argument("--zero", type=int, default=2, choices=(1, 2, 3), help="DeepSpeed ZeRO stage (2)")
    options.add_argument("--offload", choices=("none", "optimizer", "all"), default="none", help="to the CPU (none)")
    options.add_argument("--optimizer", choices=("adamw", "adamw8bit"), default="adamw", help="trainer.optimizer (adamw)")
    options.add_argument("--lora-rank", type=int, default=0, help="model.lora.rank on every matrix (0: full training)")
    options.add_argument("--no-checkpointing", action="store_true", help="keep all activations")
    options.add_argument("--micro-tokens", type=int, default=16384, help="tokens of one micro-batch (16384)")
    options.add_argument("--sequences", type=int, default=16, help="sequences of one rank's sampler (16: two networks x 8)")
    options.add_argument("--sequence-tokens", type=int, default=8192, help="prompt and completion tokens of each (8192)")
    options.add_argument("--tensor-parallel", type=int, default=1, help="GPUs per sampler (1)")
    options.add_argument("--separate-sampler", action="store_true", help="the sampler has GPUs of its own")
    return options.parse_args(argv)


def _card(text: str) -> int:
    known = NAMED.get(text.lower(), text.lower().removesuffix("gib"))
    if not str(known).isdigit() or int(known) < 1:
        raise ArgumentTypeError(f"{text!r} is neither a number of GiB nor one of {', '.join(NAMED)}")
    return int(known)


def run_shape(chosen: Namespace) -> RunShape:
    """The run that the command line describes."""
    return RunShape(
        gpus=chosen.tensor_parallel if chosen.gpus is None else chosen.gpus,
        zero=chosen.zero,
        offload_optimizer=chosen.offload != "none",
        offload_parameters=chosen.offload == "all",
        eight_bit=chosen.optimizer == "adamw8bit",
        lora_rank=chosen.lora_rank,
        checkpointing=not chosen.no_checkpointing,
        micro_tokens=chosen.micro_tokens,
        sequences=chosen.sequences,
        sequence_tokens=chosen.sequence_tokens,
        tensor_parallel=chosen.tensor_parallel,
        sampler=not chosen.separate_sampler,
    )


def show_run(model: ModelShape, shape: RunShape, cards: Sequence[int] = CARDS) -> None:
    """Where the bytes of one run go."""
    result = plan(model, shape)
    for part in PARTS:
        print(f"  {part:<12} {getattr(result, part) / GIB:7.2f} GiB")
    print(f"  {'rollout peak':<12} {result.rollout_peak / GIB:7.2f} GiB")
    print(f"  {'update peak':<12} {result.update_peak / GIB:7.2f} GiB   host, per rank {result.host / GIB:.2f} GiB")
    fitting = [f"{card} GiB" for card in cards if result.fits(card)]
    print(f"  fits: {', '.join(fitting) or 'none of ' + ', '.join(map(str, cards)) + ' GiB'} (peak within {USABLE:.0%})")


def show_config(model: ModelShape, path: str, gpus: int, zero: int, cards: Sequence[int]) -> None:
    """Where the bytes of a configured run go, on GPUs, host and disk."""
    from writer_rl.config import load_config
    from writer_rl.run import run_plan

    config = load_config("grpo", path, [])
    shape = run_plan.run_shape(config, gpus)
    if config.trainer.zero_stage == "auto":
        shape = replace(shape, zero=zero)  # what the launcher's file will say
    print(f"{path} on {gpus} GPU{'s' * (gpus > 1)}, ZeRO-{shape.zero}")
    show_run(model, shape, cards)
    print(run_plan.run_disk_plan(config, model, config.trainer.steps).line())


def show_table(model: ModelShape, base: dict, cards: Sequence[int] = CARDS) -> None:
    """The fewest GPUs of each size for each way to train."""
    print(f"{'fewest GPUs of':<34}" + "".join(f"{card:>7} GiB" for card in cards) + f"{'peak on 8':>13}{'host/rank':>13}")
    for name, changes in WAYS:
        shape = RunShape(**{**base, **changes})
        cells = [fewest_gpus(model, shape, card) for card in cards]
        on_eight = plan(model, RunShape(**{**base, **changes, "gpus": 8}))
        row = "".join(f"{cell or '-':>11}" for cell in cells)
        print(f"{name:<34}{row}{on_eight.peak / GIB:>9.1f} GiB{on_eight.host / GIB:>9.1f} GiB")


def main(argv: list[str]) -> None:
    """Print the plan of one run, or the table."""
    chosen = arguments(argv)
    model = ModelShape.load(chosen.model)
    cards = chosen.card or CARDS
    print(
        f"{chosen.model}: {model.parameters:,} parameters ({model.layers} layers of {model.layer:,}, "
        f"embedding {model.embedding:,}{' tied' if model.tied else ''}); key-value cache {model.kv_elements * 2:,} bytes/token"
    )
    if chosen.config:
        show_config(model, chosen.config, chosen.gpus or 1, chosen.zero, cards)
        return
    shape = run_shape(chosen)
    if chosen.gpus is not None:
        show_run(model, shape, cards)
    else:
        show_table(
            model,
            {
                "gpus": shape.tensor_parallel,
                "eight_bit": shape.eight_bit,
                "lora_rank": shape.lora_rank,
                "checkpointing": shape.checkpointing,
                "micro_tokens": shape.micro_tokens,
                "sequences": shape.sequences,
                "sequence_tokens": shape.sequence_tokens,
                "tensor_parallel": shape.tensor_parallel,
                "sampler": shape.sampler,
            },
            cards,
        )


if __name__ == "__main__":
    run(main)
