"""One policy update, replayed by several trainers from the same recorded samples: CPU seconds, tokens forwarded, peak memory.

    python tests/benchmarks/bench_trainer.py [--rows demo ragged] [--sizes 1M 25M] [--repeats 3] [--csv FILE]

    tree      this trainer, what samples share computed once (trainer.packing: tree)
    padded    this trainer, padded micro-batches of similar lengths
    bare      a plain PyTorch loop: samples in order, batches of 16 padded with a mask, full softmax, an own pass for pi_old
    trl       TRL's GRPOTrainer, replaying through rollout_func   (pip install -e .[bench], or --trl FOLDER that holds it)
    baseline  the trainer of another checkout of this repository  (--baseline FOLDER, such as a git worktree of 14dc633)

An update is: reference log-probabilities, two epochs, KL on, AdamW. Each trainer runs in a fresh process, one thread, and does two
updates, of which the second counts; A B C, A B C, so that what disturbs the machine disturbs all. Gradient norms of both updates
must agree to 1e-3 first. CPU seconds are the process's; on a GPU wall seconds are taken instead, and with --peak-tflops the share of
the device's peak (MFU) that 6 FLOPs a parameter and token make up. Tokens/s: prompt and completion tokens of the samples, once an
epoch, whatever a trainer forwards.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

SIZES = {
    "1M": {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 384},
    "25M": {"hidden_size": 384, "num_hidden_layers": 8, "num_attention_heads": 6, "intermediate_size": 1792},
}
COLUMNS = (
    "date",
    "machine",
    "torch",
    "transformers",
    "trl",
    "commit",
    "row",
    "size",
    "parameters",
    "samples",
    "tokens",
    "distinct",
)
MEASURED = ("trainer", "repeat", "seconds", "tokens_per_s", "forwarded", "peak_mib", "grad_norm_1", "grad_norm_2", "mfu")
AGREE = 1e-3


def save_model(folder: Path, shape: dict[str, Any], seed: int, vocabulary: int) -> None:
    """A random Qwen2 of this shape; the same files for everybody who is compared."""
    import torch
    from tokenizers import Tokenizer, models
    from transformers import AutoModelForCausalLM, GenerationConfig, PreTrainedTokenizerFast, Qwen2Config

    settings = {
        "num_key_value_heads": shape["num_attention_heads"], "vocab_size": vocabulary, "tie_word_embeddings": True,
        "max_position_embeddings": 4096, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": None,
    }  # fmt: skip
    config = Qwen2Config(**{**settings, **shape})
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.generation_config = GenerationConfig(pad_token_id=0, eos_token_id=1)
    model.save_pretrained(folder)
    # TRL asks for a tokenizer, though it only ever sees ids here.
    words = {f"w{i}": i for i in range(vocabulary)}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, "w2")), pad_token="w0", eos_token="w1")
    tokenizer.save_pretrained(folder)


def prepare(folder: Path, row: str, size: str) -> dict[str, Any]:
    """Samples and models of a row as files; what the CSV says of them."""
    from recorded_updates import recorded, vocabulary_of
    from transformers import AutoModelForCausalLM

    from rollout.tree.prefix_tree import PrefixTree

    samples = recorded(row, size)
    (folder / "samples.json").write_text(json.dumps([asdict(s) for s in samples]))
    for seed, name in enumerate(("policy", "reference")):
        save_model(folder / name, SIZES[size], seed, vocabulary_of(row))
    sequences = [(*s.prompt_ids, *s.completion_ids) for s in samples]
    model = AutoModelForCausalLM.from_pretrained(folder / "policy")
    return {
        "parameters": model.num_parameters(),
        "samples": len(samples),
        "tokens": sum(map(len, sequences)),
        "distinct": len(PrefixTree.of(sequences)),
    }


def measure(trainer: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One trainer in a fresh process."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", WANDB_MODE="disabled", TOKENIZERS_PARALLELISM="false")
    paths = {"trl": options.trl, "baseline": options.baseline}
    environment["BENCH_PATH"] = str(paths.get(trainer) or "")
    command = [sys.executable, str(HERE / "trainer_worker.py"), trainer, str(folder), str(options.budget or 0)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise SystemExit(f"{trainer} failed:\n{done.stderr[-3000:]}")
    return json.loads(lines[-1].removeprefix("RESULT "))


def check(results: dict[str, dict[str, Any]]) -> None:
    """All trainers have the same gradient norms, or their times compare different work."""
    norms = {name: result["grad_norms"] for name, result in results.items()}
    expected = next(iter(norms.values()))
    for found in norms.values():
        for ours, theirs in zip(found, expected, strict=True):
            if abs(ours - theirs) > AGREE * abs(theirs):
                raise SystemExit(f"gradient norms differ, times would compare different work: {norms}")
    print(f"  gradient norms agree: {', '.join(f'{norm:.6f}' for norm in expected)} ({', '.join(norms)})")


def main() -> None:
    from recorded_updates import ROWS

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    options.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    options.add_argument("--trainers", nargs="+", default=["tree", "padded", "bare"])
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--budget", type=int, help="trainer.micro_batch_tokens of tree, padded and baseline; default: theirs")
    options.add_argument("--trl", type=Path, help="a folder with TRL in it; adds the trainer trl")
    options.add_argument("--baseline", type=Path, help="another checkout; adds the trainer baseline")
    options.add_argument("--csv", type=Path, help="append the measurements to this file")
    options.add_argument("--peak-tflops", type=float, help="of the device, for MFU")
    chosen = options.parse_args()
    names = chosen.trainers + ["trl"] * bool(chosen.trl) + ["baseline"] * bool(chosen.baseline)
    for size in chosen.sizes:
        for row in chosen.rows:
            with tempfile.TemporaryDirectory() as folder:
                run_row(row, size, names, Path(folder), chosen)


def run_row(row: str, size: str, names: list[str], folder: Path, options: argparse.Namespace) -> None:
    """All trainers on one row, alternating; printed and appended to the CSV."""
    from recorded_updates import ROWS

    facts = prepare(folder, row, size)
    print(
        f"\n{size}, {ROWS[row][1]}: {facts['samples']} samples, {facts['tokens']:,} tokens, {facts['distinct']:,} distinct",
        flush=True,
    )
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {cpu_name()}"
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout.strip()
    versions = {"torch": version("torch"), "transformers": version("transformers"), "trl": "1.16.0" if options.trl else ""}
    head = {"date": date.today().isoformat(), "machine": machine, **versions, "commit": commit, "row": row, "size": size, **facts}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    last: dict[str, dict[str, Any]] = {}
    for repeat in range(options.repeats):
        last = {name: measure(name, folder, options) for name in names}
        check(last)
        for name, found in last.items():
            seconds[name].append(found["seconds"])
            work = 2 * facts["tokens"]  # two epochs
            flops = facts["parameters"] * facts["tokens"] * (2 * 6 + 2)
            record = {
                **head,
                "trainer": name,
                "repeat": repeat,
                "seconds": round(found["seconds"], 3),
                "tokens_per_s": round(work / found["seconds"]),
                "forwarded": found["forwarded"],
                "peak_mib": round(found["peak_mib"]),
                "grad_norm_1": found["grad_norms"][0],
                "grad_norm_2": found["grad_norms"][1],
                "mfu": round(flops / found["seconds"] / options.peak_tflops / 1e12, 4) if options.peak_tflops else "",
            }
            append(options.csv, record)
    print(f"  {'':<10}{'s/update':>10}{'tokens/s':>10}{'forwarded':>11}{'peak MiB':>10}{'against tree':>14}")
    for name in names:
        ratios = [ours / tree for ours, tree in zip(seconds[name], seconds.get("tree", seconds[names[0]]), strict=True)]
        median = statistics.median(seconds[name])
        print(
            f"  {name:<10}{median:>10.2f}{2 * facts['tokens'] / median:>10,.0f}{last[name]['forwarded']:>11,}"
            f"{last[name]['peak_mib']:>10,.0f}{statistics.median(ratios):>13.2f}x",
            flush=True,
        )


def append(path: Path | None, record: dict[str, Any]) -> None:
    """One line of the CSV, with a header where it is new."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, (*COLUMNS, *MEASURED), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(record)


def cpu_name() -> str:
    """The processor as Linux names it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


if __name__ == "__main__":
    main()
