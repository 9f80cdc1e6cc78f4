"""The same work on one rank and on two (gloo): wall time, CPU time, tokens/s.

    python tests/benchmarks/bench_ranks.py [--repeats 4] [--stages 0 2] [--pairs 2] [--rounds 3]

Two tables, one thread per rank:

    update    one policy update (reference, two epochs) of the tiny Writer's architecture with random weights on the demo's
              row of recorded_updates.py; their losses must agree
    round     whole rounds of configs/demo.yaml by launch/grpo.py: rollouts, rewards, questions, update, sync, checkpoint; the
              first is not counted, and the returns of both must agree

One rank and two take turns, `pairs` times, and the medians are shown. On a busy machine look at the CPU time; the wall time says
what a user gains from a second core.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def make_model(seed: int, vocabulary: int) -> Any:
    """The tiny Writer's architecture with random weights."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(seed)
    config = AutoConfig.from_pretrained(ROOT / "configs" / "tiny_writer", vocab_size=vocabulary)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def work(repeats: int, stage: int) -> None:
    """One rank's part; rank 0 prints a JSON line."""
    from writer_rl.train.distributed import connect, disconnect

    world = connect(threads=1)
    from tests.benchmarks.recorded_updates import recorded, vocabulary_of
    from writer_rl.config import GRPOTrainer
    from writer_rl.grpo.samples import balanced_shares
    from writer_rl.grpo.update import update_policy
    from writer_rl.model.batching import length
    from writer_rl.model.policy import Policy
    from writer_rl.train.backend import Backend
    from writer_rl.train.packing import packing

    settings = GRPOTrainer(lr=1e-4, kl_limit=None, micro_batch_tokens=2048, zero_stage=stage)
    everything, vocabulary = recorded("demo"), vocabulary_of("demo")
    share = balanced_shares(everything, world.size, packing(settings.packing))[world.rank]
    reference = Policy(make_model(1, vocabulary)).requires_grad_(False)
    trainer = Backend(Policy(make_model(0, vocabulary)), settings, world)
    walls, cpus, loss = [], [], None
    for repeat in range(repeats + 1):
        world.barrier()
        wall, cpu = time.perf_counter(), time.process_time()
        report = update_policy(trainer, reference, share, settings)
        world.barrier()
        loss = report.epochs[0].loss if repeat == 0 else loss
        if repeat:
            walls.append(time.perf_counter() - wall)
            cpus.append(world.sum([time.process_time() - cpu])[0])
        else:
            world.sum([0.0])
    if world.is_main:
        tokens = sum(map(length, everything)) * settings.epochs
        print(json.dumps({"wall": statistics.median(walls), "cpu": statistics.median(cpus), "tokens": tokens, "result": loss}))
    disconnect()


def update_row(stage: int, ranks: int, repeats: int) -> dict[str, float]:
    """One process group does the work of `work`."""
    done = torchrun(ranks, __file__, "--repeats", repeats, "--work", stage)
    return json.loads(done.splitlines()[-1])


def round_row(stage: int, ranks: int, rounds: int) -> dict[str, float]:
    """Medians over the rounds but the first of a real run."""
    with tempfile.TemporaryDirectory() as folder:
        torchrun(
            ranks, ROOT / "launch" / "grpo.py", "--config", ROOT / "configs" / "demo.yaml", "--output_dir", f"{folder}/run",
            "--trainer.steps", rounds + 1, "--trainer.zero_stage", stage, "--trainer.threads", 1, "--evaluation.every", 0,
            "--tracking.wandb", "off", "--tracking.progress", "false", "--tracking.plot_every", 0,
        )  # fmt: skip
        records = [json.loads(line) for line in Path(folder, "run", "metrics.jsonl").read_text().splitlines()]
    found = {key: statistics.median(r[f"time/{key}"] for r in records[1:]) for key in ("round", "rollout", "update")}
    return {**found, "result": records[0]["reward/return/mean"]}


def torchrun(ranks: int, *command: object) -> str:
    """What rank 0 prints."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*launcher, *map(str, command)], capture_output=True, text=True, env=environment, cwd=ROOT)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    return done.stdout


def paired(pairs: int, tolerance: float, measure: Callable[[int], dict[str, float]]) -> dict[int, dict[str, float]]:
    """Medians of each figure by number of ranks; one and two ranks take turns, and agree in their `result`."""
    found: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(pairs):
        for ranks, rows in found.items():
            rows.append(measure(ranks))
    for alone, both in zip(found[1], found[2], strict=True):
        assert abs(alone["result"] - both["result"]) < tolerance, "one rank and two computed other things"
    return {ranks: {key: statistics.median(row[key] for row in rows) for key in rows[0]} for ranks, rows in found.items()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeats", type=int, default=4)
    options.add_argument("--stages", type=int, nargs="+", default=[0, 2])
    options.add_argument("--pairs", type=int, default=2)
    options.add_argument("--rounds", type=int, default=3, help="0: no second table")
    options.add_argument("--work", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.work is not None:
        work(chosen.repeats, chosen.work)
        return
    print(f"{'update':<20}{'wall s':>10}{'CPU s':>10}{'tokens/s':>12}{'against one rank':>18}")
    for stage in chosen.stages:
        rows = paired(chosen.pairs, 1e-4, lambda ranks, stage=stage: update_row(stage, ranks, chosen.repeats))
        for ranks, row in rows.items():
            rate, gain = row["tokens"] / row["wall"], rows[1]["wall"] / row["wall"]
            print(f"{label(stage, ranks):<20}{row['wall']:>10.2f}{row['cpu']:>10.2f}{rate:>12,.0f}{gain:>17.2f}x")
    if not chosen.rounds:
        return
    print(f"\n{'round':<20}{'wall s':>10}{'rollout s':>10}{'update s':>12}{'against one rank':>18}")
    for stage in chosen.stages:
        # Other batches round otherwise, which can turn a sampled token in thousands.
        rows = paired(chosen.pairs, 0.02, lambda ranks, stage=stage: round_row(stage, ranks, chosen.rounds))
        for ranks, row in rows.items():
            gain = rows[1]["round"] / row["round"]
            print(f"{label(stage, ranks):<20}{row['round']:>10.2f}{row['rollout']:>10.2f}{row['update']:>12.2f}{gain:>17.2f}x")


def label(stage: int, ranks: int) -> str:
    return f"ZeRO {stage}, {ranks} rank{'s' * (ranks > 1)}"


if __name__ == "__main__":
    main()
