"""The same policy update on one rank and on two (gloo): wall time, CPU time, tokens/s.

    python tests/benchmarks/bench_ranks.py [--samples 128] [--repeats 4] [--stages 0 2]

The tiny Writer's architecture with random weights, the samples of bench_trainer.py, one thread per rank. Both run the same work:
their losses must agree. On a busy machine look at the CPU time; the wall time says what a user gains from a second core.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def work(samples: int, repeats: int, stage: int) -> None:
    """One rank's part; rank 0 prints a JSON line."""
    from writer_rl.distributed import connect, disconnect

    world = connect(threads=1)
    from tests.benchmarks.bench_trainer import make_model, make_samples
    from writer_rl.backend import Backend
    from writer_rl.batching import length
    from writer_rl.config import GRPOTrainer
    from writer_rl.policy import Policy
    from writer_rl.samples import balanced_shares
    from writer_rl.update import update_policy

    settings = GRPOTrainer(lr=1e-4, kl_limit=None, micro_batch_tokens=2048, zero_stage=stage)
    everything = make_samples(samples, make_model(0).config.vocab_size)
    share = balanced_shares(everything, world.size)[world.rank]
    reference = Policy(make_model(1)).requires_grad_(False)
    trainer = Backend(Policy(make_model(0)), settings, world)
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
        print(json.dumps({"wall": statistics.median(walls), "cpu": statistics.median(cpus), "tokens": tokens, "loss": loss}))
    disconnect()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--samples", type=int, default=128)
    options.add_argument("--repeats", type=int, default=4)
    options.add_argument("--stages", type=int, nargs="+", default=[0, 2])
    options.add_argument("--work", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.work is not None:
        work(chosen.samples, chosen.repeats, chosen.work)
        return
    print(f"{'':<16}{'wall s':>10}{'CPU s':>10}{'tokens/s':>12}{'against one rank':>18}")
    for stage in chosen.stages:
        alone = None
        for ranks in (1, 2):
            command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks), __file__]
            command += ["--samples", str(chosen.samples), "--repeats", str(chosen.repeats), "--work", str(stage)]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            found = json.loads(done.stdout.splitlines()[-1])
            alone = alone or found
            assert abs(found["loss"] - alone["loss"]) < 1e-4, "the ranks computed other things"
            name = f"ZeRO {stage}, {ranks} rank{'s' * (ranks > 1)}"
            rate = found["tokens"] / found["wall"]
            print(f"{name:<16}{found['wall']:>10.2f}{found['cpu']:>10.2f}{rate:>12,.0f}{alone['wall'] / found['wall']:>17.2f}x")


if __name__ == "__main__":
    main()
