"""`trainer.ratio`: between policies, or between what the sampler could draw."""

import pytest
import torch

from rollout.engine import GenerationRequest, SamplingParams
from rollout.hf.engine import HFEngine
from rollout.mismatch import processed_logprobs
from tests.writer_rl.grpo.test_update import backend, reference, samples, settings, sgd
from tests.writer_rl.tiny_run import make_model
from tests.writer_rl.train.test_backend import RATE, difference, parameters
from writer_rl.grpo.objective import grpo_sums
from writer_rl.grpo.samples import Sample
from writer_rl.grpo.update import update_policy
from writer_rl.model.batching import collate
from writer_rl.model.policy import Policy
from writer_rl.model.support import Drawing
from writer_rl.train.distributed import connect
from writer_rl.train.tree_batch import TreeBatch

DRAWING = Drawing(0.7, 0.6)


@pytest.fixture(scope="module")
def world():
    return connect(threads=1)


def test_by_hand_with_a_ratio_of_its_own():
    """Ratio 0.5 / 0.4 = 1.25 is clipped to 1.2 at advantage 1, whatever the raw one says; KL is of the raw ones (equal: 0)."""
    raw, one = torch.tensor([[-3.0]]), torch.ones(1, 1)
    ratio_of = torch.tensor([[0.5]]).log(), torch.tensor([[0.4]]).log()
    sums = grpo_sums(raw, raw, raw, torch.ones(1), one, ratio_of=ratio_of)
    assert sums.loss.item() == pytest.approx(-1.2) and sums.kl == 0 and sums.clipped == 1


def plain_sampler_gradient(drawn):
    """Of the objective on one big batch, over dense masked logits: the ratio is 1, its gradient that of masked log p."""
    policy, batch = Policy(make_model()), collate(drawn)
    logits = policy.model(input_ids=batch.input_ids).logits[batch.rows, batch.columns]
    with torch.no_grad():
        raw = logits.log_softmax(-1)
        scaled = (raw / DRAWING.temperature).log_softmax(-1)
        ordered = scaled.sort(-1, descending=True)
        before = ordered.values.double().exp().cumsum(-1) - ordered.values.double().exp()
        inside = torch.zeros_like(scaled, dtype=torch.bool).scatter(-1, ordered.indices, before < DRAWING.top_p)
        inside[torch.arange(len(inside)), batch.targets] = True
    masked = (logits / DRAWING.temperature).masked_fill(~inside, float("-inf")).log_softmax(-1)
    now = batch.per_sample(masked.gather(-1, batch.targets[:, None])[:, 0])
    logp, ref = (batch.per_sample(model(batch)[0]) for model in (policy, reference()))
    advantages = torch.tensor([s.advantage for s in drawn])
    sums = grpo_sums(logp, logp.detach(), ref, advantages, batch.mask, ratio_of=(now, now.detach()))
    (sums.loss / sums.samples).backward()
    return {name: p.grad for name, p in policy.model.named_parameters()}


@pytest.mark.parametrize("stage", [0, 2, 3])
@pytest.mark.parametrize("packing", ["tree", "padded"])
def test_the_gradient_is_that_of_masked_logits(world, packing, stage):
    drawn = samples()
    chosen = settings(epochs=1, zero_stage=stage, ratio="sampler", packing=packing)
    trained = backend(world, chosen, sgd)
    before = parameters(trained)
    report = update_policy(trained, reference(), drawn, chosen, drawing=DRAWING)
    found = {name: (before[name] - after) / RATE for name, after in parameters(trained).items()}
    assert difference(found, plain_sampler_gradient(drawn)) < 1e-5
    assert report.bias.sequences == 8


@pytest.mark.parametrize("stage", [0, 3])
def test_looking_at_the_bias_changes_no_bit_of_the_update(world, stage):
    runs = []
    for drawing in (None, DRAWING):
        chosen = settings(zero_stage=stage)
        trained = backend(world, chosen)
        report = update_policy(trained, reference(), samples(), chosen, drawing=drawing)
        runs.append((parameters(trained), report.epochs))
    assert all(torch.equal(runs[0][0][name], runs[1][0][name]) for name in runs[0][0])
    assert runs[0][1] == runs[1][1]


def test_two_epochs_keep_the_sets_and_differ_from_policy(world):
    found = {}
    for ratio in ("policy", "sampler"):
        chosen = settings(ratio=ratio, lr=0.02)
        found[ratio] = update_policy(backend(world, chosen), reference(), samples(), chosen, drawing=DRAWING)
        assert found[ratio].steps == 2
    assert found["policy"].epochs[0].kl == found["sampler"].epochs[0].kl
    assert found["policy"].epochs[1].loss != found["sampler"].epochs[1].loss


def test_without_the_samplers_settings_it_is_refused(world):
    with pytest.raises(ValueError, match="temperature and top_p"):
        update_policy(backend(world, settings()), reference(), samples(), settings(ratio="sampler"))


def test_the_mean_ratio_to_what_the_hf_engine_drew_from_is_1(world, hf_engine):
    """Trainer's masked log-probabilities against the sampler's processed ones, recomputed from plain logits, on real rollouts."""
    engine, model = hf_engine
    sampling = SamplingParams(DRAWING.temperature, DRAWING.top_p, 24)
    made = engine.generate([GenerationRequest((3, 5, 7 + i % 2), 11 + i, sampling) for i in range(8)])
    drawn = [Sample("n", i, 0, (3, 5, 7 + i % 2), g.token_ids, g.logprobs, 1.0) for i, g in enumerate(made)]
    batch = TreeBatch.of(drawn)
    policy = Policy(model)
    with torch.no_grad():
        masked = batch.per_sample(policy(batch, drawn=DRAWING)[2])
        for row, sample in enumerate(drawn):
            ids = torch.tensor([[*sample.prompt_ids, *sample.completion_ids]])
            logits = model(input_ids=ids).logits[0, len(sample.prompt_ids) - 1 : -1]
            tokens = torch.tensor(sample.completion_ids)
            sampler = processed_logprobs(logits, tokens, DRAWING.temperature, DRAWING.top_p)
            ratio = (masked[row, : len(tokens)] - sampler).exp()
            assert ratio.isfinite().all() and ratio.mean().item() == pytest.approx(1, abs=1e-3)
            raw = logits.log_softmax(-1).gather(-1, tokens[:, None])[:, 0]
            assert (sampler - raw).abs().mean() > 0.01, "temperature and nucleus do something here"


@pytest.fixture(scope="module")
def hf_engine():
    from tests.writer_rl.tiny_run import make_tokenizer

    model = make_model().eval()
    return HFEngine(model, make_tokenizer()), model
