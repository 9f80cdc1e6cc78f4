"""One policy update through the real DeepSpeed engine: what it computes, and every reason not to take it."""

import math
from dataclasses import replace

import pytest
import torch

from tests.writer_rl.tiny_run import make_model
from tests.writer_rl.train.test_backend import RATE, difference, parameters, ragged_samples
from writer_rl.config import GRPOTrainer
from writer_rl.grpo.objective import clipped_grpo
from writer_rl.grpo.samples import Sample
from writer_rl.grpo.update import update_policy
from writer_rl.model.batching import collate
from writer_rl.model.policy import Policy
from writer_rl.train.backend import Backend
from writer_rl.train.distributed import connect


@pytest.fixture(scope="module")
def world():
    return connect(threads=1)


def samples(count=8, advantage=lambda i: (-1.0) ** i * (1 + i / 4)):
    plain = ragged_samples(count)
    return [
        Sample("n", i, 0, s.prompt_ids, s.completion_ids, (-1.0,) * len(s.completion_ids), advantage(i))
        for i, s in enumerate(plain)
    ]


def settings(**changes):
    return GRPOTrainer(
        **({"lr": 1e-2, "kl_limit": None, "max_grad_norm": 1e9, "micro_batch_tokens": 40, "zero_stage": 0} | changes)
    )


def sgd(module, _):
    return torch.optim.SGD(module.parameters(), lr=RATE)


def backend(world, trainer, optimizer=None, seed=0):
    return Backend(Policy(make_model(seed=seed)), trainer, world, *([optimizer] if optimizer else []))


def reference(seed=1):
    return Policy(make_model(seed=seed)).requires_grad_(False).eval()


def plain_objective(drawn):
    """Gradient, loss and KL of the objective on one big batch with torch alone; pi_old is the policy itself."""
    policy, ref, batch = Policy(make_model()), reference(), collate(drawn)
    logp, ref_logp = (batch.per_sample(model(batch)[0]) for model in (policy, ref))
    expected = clipped_grpo(logp, logp.detach(), ref_logp, torch.tensor([s.advantage for s in drawn]), batch.mask)
    expected.loss.backward()
    return {name: p.grad for name, p in policy.model.named_parameters()}, expected.loss.item(), expected.kl.item()


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize("budget", [1, 60, 10_000])
def test_the_gradient_is_that_of_the_objective_on_one_big_batch(world, budget, stage):
    """Eight micro-batches of one sample, a few, or one: the budgets cut them so."""
    drawn = samples()
    expected, loss, kl = plain_objective(drawn)
    chosen = settings(micro_batch_tokens=budget, epochs=1, zero_stage=stage)
    trained = backend(world, chosen, sgd)
    before = parameters(trained)
    report = update_policy(trained, reference(), drawn, chosen)
    found = {name: (before[name] - after) / RATE for name, after in parameters(trained).items()}
    assert difference(found, expected) < 1e-5
    assert report.epochs[0].loss == pytest.approx(loss, rel=1e-5)
    assert report.epochs[0].kl == pytest.approx(kl, rel=1e-5)
    assert report.epochs[0].clip_fraction == 0.0
    assert (report.steps, report.skipped, report.samples) == (1, None, 8)


def test_two_epochs_against_a_plain_loop(world):
    """pi_old stays that of the start, so the second epoch clips; AdamW's steps are those of torch alone."""
    drawn, ref = samples(), reference()
    trained = backend(world, settings())
    report = update_policy(trained, ref, drawn, settings())
    policy, batch = Policy(make_model()), collate(drawn)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2, weight_decay=0.0)
    with torch.no_grad():
        old, ref_logp = batch.per_sample(policy(batch)[0]), batch.per_sample(ref(batch)[0])
    figures = []
    for _ in range(2):
        logp = batch.per_sample(policy(batch)[0])
        result = clipped_grpo(logp, old, ref_logp, torch.tensor([s.advantage for s in drawn]), batch.mask)
        optimizer.zero_grad()
        result.loss.backward()
        optimizer.step()
        figures.append((result.loss.item(), result.kl.item(), result.clip_fraction.item()))
    assert [(e.loss, e.kl, e.clip_fraction) for e in report.epochs] == [pytest.approx(f, rel=2e-3) for f in figures]
    assert report.epochs[1].clip_fraction > 0


def test_at_the_start_the_kl_is_exactly_zero_and_the_entropy_is_the_policys(world):
    trained = backend(world, settings(epochs=1))
    report = update_policy(trained, reference(seed=0), samples(), settings(epochs=1))
    assert report.epochs[0].kl == 0.0
    batch = collate(samples())
    _, entropies = Policy(make_model())(batch, entropy=True)
    assert report.entropy == pytest.approx(entropies.mean().item(), rel=1e-5)


@pytest.mark.parametrize("packing", ["tree", "padded"])
def test_old_log_probabilities_are_reported_beside_the_samplers(world, packing):
    """Pair by pair, whatever the layout: here the sampler's value names the token."""
    drawn = samples(4)
    named = [replace(s, sampler_logprobs=tuple(-i - j / 64 for j in range(len(s.completion_ids)))) for i, s in enumerate(drawn)]
    chosen = settings(packing=packing)
    report = update_policy(backend(world, chosen), reference(), named, chosen)
    found = dict(zip(report.sampler_logprobs, report.trainer_logprobs, strict=True))
    with torch.no_grad():
        rows = [Policy(make_model())(collate([s]))[0].tolist() for s in drawn]
    expected = {-i - j / 64: value for i, row in enumerate(rows) for j, value in enumerate(row)}
    assert found == pytest.approx(expected, abs=1e-5)


def test_over_the_kl_limit_nothing_changes(world):
    trained = backend(world, settings())
    before = parameters(trained)
    report = update_policy(trained, reference(seed=1), samples(), settings(kl_limit=1e-4))
    assert (report.skipped, report.steps, len(report.epochs)) == ("kl", 0, 1)
    assert report.epochs[0].kl > 1e-4 and report.epochs[0].grad_norm is None
    assert all(torch.equal(before[name], tensor) for name, tensor in parameters(trained).items())
    assert not trained.optimizer.state and trained.engine.global_steps == 0


def test_the_second_epoch_over_the_limit_is_skipped_and_the_first_stays(world):
    limited = settings(kl_limit=1e-6)
    trained = backend(world, limited)
    report = update_policy(trained, reference(seed=0), samples(), limited)
    assert (report.skipped, report.steps, len(report.epochs)) == ("kl", 1, 2)
    once = backend(world, settings(epochs=1))
    update_policy(once, reference(seed=0), samples(), settings(epochs=1))
    assert all(torch.equal(tensor, parameters(once)[name]) for name, tensor in parameters(trained).items())


def test_a_skip_then_an_update_is_the_update_alone(world):
    trained, alone = backend(world, settings()), backend(world, settings())
    update_policy(trained, reference(seed=1), samples(), settings(kl_limit=1e-9))
    update_policy(trained, reference(seed=1), samples(), settings())
    update_policy(alone, reference(seed=1), samples(), settings())
    assert all(torch.equal(tensor, parameters(alone)[name]) for name, tensor in parameters(trained).items())


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_an_advantage_that_is_not_finite_skips_the_update(world, broken):
    trained = backend(world, settings())
    before = parameters(trained)
    report = update_policy(trained, reference(), samples(advantage=lambda i: broken if i == 3 else 1.0), settings())
    assert (report.skipped, report.steps) == ("nonfinite", 0)
    assert all(torch.equal(before[name], tensor) for name, tensor in parameters(trained).items())
    assert update_policy(trained, reference(), samples(), settings()).steps == 2


def test_a_broken_reference_is_a_kl_that_is_not_finite(world):
    ref = reference()
    ref.model.model.norm.weight.fill_(float("nan"))
    report = update_policy(backend(world, settings(kl_coef=0.0)), ref, samples(), settings(kl_coef=0.0))
    assert report.skipped in ("kl", "nonfinite") and report.steps == 0


def test_without_samples_the_update_is_empty(world):
    report = update_policy(backend(world, settings()), reference(), [], settings())
    assert (report.skipped, report.steps, report.epochs) == ("empty", 0, ())


def test_the_importance_cap_weights_tokens_by_trainer_over_sampler(world):
    """Sampler log-probabilities one nat below the trainer's: the ratio e is capped at 1.5, which scales the surrogate alone."""
    with torch.no_grad():
        plain = [Policy(make_model())(collate([s]))[0].tolist() for s in samples()]
    lower = [
        Sample("n", s.trajectory, 0, s.prompt_ids, s.completion_ids, tuple(v - 1 for v in values), s.advantage)
        for s, values in zip(samples(), plain, strict=True)
    ]
    norms = []
    for cap in (None, 1.5):
        chosen = settings(epochs=1, kl_coef=0.0, importance_cap=cap)
        norms.append(update_policy(backend(world, chosen), reference(), lower, chosen).epochs[0].grad_norm)
    assert norms[1] == pytest.approx(1.5 * norms[0], rel=1e-4)
    assert math.isfinite(norms[0])
