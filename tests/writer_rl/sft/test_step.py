"""The step of SFT: the gradient of one mean loss, however the batch is split."""

import math

import pytest
import torch

from tests.writer_rl.tiny_run import make_model
from writer_rl.config import SFTTrainer
from writer_rl.model.policy import Policy
from writer_rl.sft.demonstrations import Demonstration
from writer_rl.sft.step import sft_step
from writer_rl.train.backend import Backend
from writer_rl.train.distributed import connect
from writer_rl.train.optimizers import optimizer_factory

SAMPLES = [
    Demonstration((1, 5, 9), (7, 3)),
    Demonstration((4,), (8, 8, 2, 3)),
    Demonstration((2, 2, 6, 1, 11), (3,)),
    Demonstration((9, 12), (5, 6, 3)),
]


@pytest.fixture(scope="module")
def world():
    return connect(threads=1)


def backend(world, **settings):
    settings = SFTTrainer(**({"lr": 0.05, "zero_stage": 0, "max_grad_norm": 1e9, "weight_decay": 0.0} | settings))
    return Backend(Policy(make_model()), settings, world, optimizer_factory(settings, 0, 1))


def parameters(engine):
    return {name: p.detach().clone() for name, p in engine.policy.model.named_parameters()}


def plain_loss(model, samples):
    """Mean over all completion tokens, one sample after the other, from the model's own logits."""
    losses = []
    for sample in samples:
        ids = torch.tensor([[*sample.prompt_ids, *sample.completion_ids]])
        logprobs = model(input_ids=ids).logits[0].log_softmax(-1)
        start = len(sample.prompt_ids)
        losses += [-logprobs[start + i - 1, token] for i, token in enumerate(sample.completion_ids)]
    return torch.stack(losses).mean()


@pytest.mark.parametrize("budget", [1, 8, 10_000])
def test_a_step_is_that_of_the_mean_loss_however_it_is_split(world, budget):
    engine = backend(world, optimizer="adamw")
    model = make_model()
    loss = plain_loss(model, SAMPLES)
    loss.backward()
    norm = math.sqrt(sum(float((p.grad**2).sum()) for p in model.parameters()))
    figures = sft_step(engine, SAMPLES, budget, 1.0)
    assert figures.loss == pytest.approx(float(loss), rel=1e-5)
    assert figures.grad_norm == pytest.approx(norm, rel=1e-4)
    assert (figures.completion_tokens, figures.tokens, figures.taken) == (10, 21, True)


def test_prompts_have_no_loss(world):
    """What a prompt says after its first token matters only through what the completion is given."""
    engine = backend(world)
    lone = [Demonstration((1, 5, 9), ())]
    both = [*SAMPLES[:1], *lone]
    assert sft_step(engine, both, 10_000, 0.0).loss == pytest.approx(float(plain_loss(make_model(), SAMPLES[:1])), rel=1e-5)


def test_accuracy_counts_tokens_that_have_most_of_the_probability(world):
    engine = backend(world, lr=0.03)
    first = sft_step(engine, SAMPLES, 10_000, 1.0)
    for _ in range(60):
        last = sft_step(engine, SAMPLES, 10_000, 1.0)
    assert first.accuracy < 0.5 and last.accuracy == 1.0 and last.loss < 0.2


def test_a_loss_that_is_not_finite_changes_nothing(world):
    engine = backend(world)
    before = parameters(engine)
    engine.policy.model.model.norm.weight.data.fill_(math.nan)
    figures = sft_step(engine, SAMPLES, 10_000, 1.0)
    assert not figures.taken
    after = parameters(engine)
    assert all(torch.equal(after[name], p) for name, p in before.items() if name != "model.norm.weight")
