"""What each rank of tests/writer_rl/test_ranks.py does; run by torchrun, writes what it saw to a file per rank."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from writer_rl.train.distributed import connect, prepare_environment

prepare_environment()
import torch  # noqa: E402

from tests.writer_rl.tiny_run import make_model  # noqa: E402
from tests.writer_rl.train.test_backend import (  # noqa: E402
    RATE,
    accumulate,
    build,
    build_for_gradients,
    gradient,
    parameters,
    ragged_samples,
)
from writer_rl.config import GRPOTrainer  # noqa: E402
from writer_rl.grpo.samples import Sample, balanced_shares  # noqa: E402
from writer_rl.grpo.update import update_policy  # noqa: E402
from writer_rl.model.policy import Policy  # noqa: E402
from writer_rl.model.support import Drawing  # noqa: E402
from writer_rl.train.packing import packing  # noqa: E402


def gradients(world, stage):
    """The gradient of eight ragged samples, four micro-batches of one sample on each rank, and one micro-batch of four."""
    mine = ragged_samples()[world.rank :: world.size]
    found = {}
    for name, groups in (("4 micro-batches", [[s] for s in mine]), ("1 micro-batch", [mine])):
        grads, norm = gradient(build_for_gradients(world, stage), groups)
        found[name] = {"gradient": grads, "norm": norm}
    return found


def objective(world, stage):
    """The gradient that update_policy applies, reference and clipping included: 2 ranks with 4, 2 and 1 micro-batches each."""
    reference = Policy(make_model(seed=1)).requires_grad_(False)
    found = {}
    for layout, budget in (("tree", 1), ("tree", 60), ("tree", 10_000), ("padded", 60)):
        share = weighted(balanced_shares(ragged_samples(), world.size, packing(layout))[world.rank])
        backend = build_for_gradients(world, stage)
        before = parameters(backend)
        settings = GRPOTrainer(zero_stage=stage, epochs=1, kl_limit=None, micro_batch_tokens=budget, packing=layout)
        report = update_policy(backend, reference, share, settings)
        gradient = {name: (before[name] - after) / RATE for name, after in parameters(backend).items()}
        found[layout, budget] = {"gradient": gradient, "loss": report.epochs[0].loss, "kl": report.epochs[0].kl}
    return found


def sampler_ratio(world, stage):
    """The same with the ratio between what the sampler could draw."""
    reference = Policy(make_model(seed=1)).requires_grad_(False)
    share = weighted(balanced_shares(ragged_samples(), world.size, packing("tree"))[world.rank])
    backend = build_for_gradients(world, stage)
    before = parameters(backend)
    settings = GRPOTrainer(zero_stage=stage, epochs=1, kl_limit=None, micro_batch_tokens=60, ratio="sampler")
    update_policy(backend, reference, share, settings, drawing=Drawing(0.7, 0.6))
    return {name: (before[name] - after) / RATE for name, after in parameters(backend).items()}


def resumed(world, stage, folder):
    """Three steps, and two steps, a save, a load into a new engine, and the third: both ranks' shards come back."""
    groups = [[s] for s in ragged_samples()[world.rank :: world.size]]
    whole = build(world, stage)
    for step in range(3):
        if step == 2:
            whole.save(folder)
        accumulate(whole, groups)
        whole.step()
    later = build(world, stage)
    later.load(folder)
    accumulate(later, groups)
    later.step()
    return all(torch.equal(tensor, parameters(whole)[name]) for name, tensor in parameters(later).items())


def weighted(samples):
    return [
        Sample("n", s.trajectory, 0, s.prompt_ids, s.completion_ids, (-1.0,) * len(s.completion_ids), (-1.0) ** s.trajectory)
        for s in samples
    ]


def skips(world, stage):
    """Updates of which one rank alone has a reason to skip; each followed by a healthy one."""
    settings = GRPOTrainer(zero_stage=stage, lr=1e-2, kl_limit=0.2, micro_batch_tokens=40)
    near, far = Policy(make_model()).requires_grad_(False), Policy(make_model(seed=1)).requires_grad_(False)
    broken = Policy(make_model()).requires_grad_(False)
    broken.model.model.norm.weight.fill_(float("nan"))
    share = weighted(balanced_shares(ragged_samples(), world.size, packing("tree"))[world.rank])
    found = {}
    clean = build(world, stage, lr=1e-4)
    healthy = update_policy(clean, near, share, settings)
    for name, on_rank_1 in (("kl", far), ("nan", broken)):
        backend = build(world, stage, lr=1e-4)
        before = parameters(backend)
        report = update_policy(backend, on_rank_1 if world.rank == 1 else near, share, settings)
        untouched = all(torch.equal(before[n], t) for n, t in parameters(backend).items())
        after = update_policy(backend, near, share, settings)
        found[name] = {
            "skipped": report.skipped,
            "kl": report.epochs[0].kl,
            "untouched": untouched,
            "steps": backend.engine.global_steps,
            "same_afterwards": all(torch.equal(t, parameters(clean)[n]) for n, t in parameters(backend).items()),
            "epochs": [(e.loss, e.kl, e.grad_norm) for e in after.epochs]
            == [(e.loss, e.kl, e.grad_norm) for e in healthy.epochs],
        }
    return found


def uneven(world, stage):
    """All samples on rank 0, none on rank 1, whose passes are zero work: the same update as when they are shared out."""
    settings = GRPOTrainer(zero_stage=stage, lr=1e-2, kl_limit=None, micro_batch_tokens=40)
    reference = Policy(make_model(seed=1)).requires_grad_(False)
    reports = []
    for shares in ([ragged_samples(), []], balanced_shares(ragged_samples(), 2, packing("tree"))):
        report = update_policy(build(world, stage), reference, weighted(shares[world.rank]), settings)
        reports.append([(e.loss, e.kl, e.clip_fraction, e.grad_norm) for e in report.epochs])
    empty = update_policy(build(world, stage), reference, [], settings)
    return {"reports": reports, "empty": (empty.skipped, empty.steps)}


def main(folder: str) -> None:
    world = connect(threads=1)
    seen = {}
    for stage in (0, 1, 2, 3):
        seen[stage] = {
            "gradients": gradients(world, stage),
            "objective": objective(world, stage),
            "sampler_ratio": sampler_ratio(world, stage),
            "skips": skips(world, stage),
            "uneven": uneven(world, stage),
            "resumed": resumed(world, stage, Path(folder) / f"zero{stage}"),
        }
    torch.save(seen, Path(folder) / f"rank-{world.rank}.pt")


if __name__ == "__main__":
    main(sys.argv[1])
