"""The real DeepSpeed engine in one process, on every ZeRO stage: gradients, discards, clipping, saving."""

import math
import random

import pytest
import torch

from rollout.weights import named_weights
from tests.writer_rl.tiny_run import make_model
from writer_rl.config import GRPOTrainer
from writer_rl.grpo.samples import ZERO_WORK, Sample
from writer_rl.model.batching import collate
from writer_rl.model.policy import Policy
from writer_rl.train.backend import Backend
from writer_rl.train.deepspeed_config import BackendError, deepspeed_config, zero_settings
from writer_rl.train.distributed import connect

STAGES = [0, 1, 2, 3]
RATE = 1e4


@pytest.fixture(scope="module")
def world():
    return connect(threads=1)


def ragged_samples(count=8):
    dice = random.Random(0)

    def ids(low, high):
        return tuple(dice.randrange(22) for _ in range(dice.randrange(low, high)))

    stems = ((), ids(6, 9), ids(3, 5))  # two in three share their beginning with others
    return [Sample("n", i, 0, stems[i % 3] + ids(1, 12), ids(1, 12), (), 1.0) for i in range(count)]


def build(world, stage=0, **settings):
    settings = {"zero_stage": stage, "lr": 1e-2, "max_grad_norm": 1e9, "betas": (0.9, 0.99)} | settings
    return Backend(Policy(make_model()), GRPOTrainer(**settings), world)


def build_for_gradients(world, stage, max_grad_norm=1e9):
    """With plain SGD of a huge rate, a step shows the gradient: AdamW would show the rounding of tiny ones enlarged."""
    settings = GRPOTrainer(zero_stage=stage, max_grad_norm=max_grad_norm)
    return Backend(Policy(make_model()), settings, world, lambda module, _: torch.optim.SGD(module.parameters(), lr=RATE))


def accumulate(backend, groups, scale=1.0, poison=None):
    for index, group in enumerate(groups):
        logprobs, _ = backend.logprobs(collate(group))
        loss = -(logprobs.sum() / 50) * scale
        if index == poison:
            loss = loss * float("nan")
        backend.backward(loss, last=index == len(groups) - 1)


def parameters(backend):
    return {name: tensor.clone() for name, tensor in named_weights(backend.policy.model, tied=False)}


def gradient(backend, groups):
    """The gradient that a step applies, by name, and its norm before clipping."""
    before = parameters(backend)
    for index, group in enumerate(groups):
        logprobs, _ = backend.logprobs(collate(group))
        weight = 0.0 if group == [ZERO_WORK] else 1.0  # no advantage, no loss
        backend.backward(-(logprobs.sum() / 50) * weight, last=index == len(groups) - 1)
    outcome = backend.step()
    assert outcome.taken
    return {name: (before[name] - after) / RATE for name, after in parameters(backend).items()}, outcome.grad_norm


def plain_gradient():
    """The same with torch alone: one big batch."""
    policy = Policy(make_model())
    (-(policy(collate(ragged_samples()))[0].sum() / 50)).backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in policy.parameters()]).item()
    return {name: p.grad for name, p in policy.model.named_parameters()}, norm


def difference(one, other):
    """Largest difference of any tensor, relative to that tensor's largest element."""
    assert one.keys() == other.keys()
    return max(((one[name] - other[name]).abs().max() / other[name].abs().max()).item() for name in other)


@pytest.mark.parametrize("stage", STAGES)
def test_micro_batches_give_the_gradient_of_one_big_batch(world, stage):
    samples = ragged_samples()
    expected, norm = plain_gradient()
    for splits in ([samples], [samples[:4], samples[4:]], [[s] for s in samples], [samples[:3], samples[3:], [ZERO_WORK]]):
        backend = build_for_gradients(world, stage)
        found, found_norm = gradient(backend, splits)
        assert difference(found, expected) < 1e-5
        assert found_norm == pytest.approx(norm, rel=1e-5)
        assert backend.engine.global_steps == 1


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("offload", ["none", "cpu"])
def test_a_discarded_update_leaves_no_trace(world, stage, offload):
    """Discards before, between and after steps: the run ends bit for bit like one without them."""
    if offload == "cpu" and stage == 0:
        pytest.skip("offload is ZeRO's")
    groups = [[s] for s in ragged_samples()]
    clean, bothered = build(world, stage, offload=offload), build(world, stage, offload=offload)
    bothered.discard()  # nothing accumulated yet
    for _ in range(2):
        accumulate(clean, groups)
        accumulate(bothered, groups[:3], scale=7.0)
        bothered.discard()
        accumulate(bothered, groups, poison=2)
        assert bothered.step().taken is False
        accumulate(bothered, groups)
        assert clean.step() == bothered.step()
    ours, theirs = parameters(bothered), parameters(clean)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert bothered.engine.global_steps == clean.engine.global_steps == 2
    assert bothered.engine.skipped_steps == 0


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_an_offloaded_optimizer_takes_plain_adamws_steps(world, stage):
    groups = [[s] for s in ragged_samples()]
    plain, offloaded = build(world, lr=1e-3), build(world, stage, offload="cpu", lr=1e-3)
    assert offloaded.offload == "cpu"
    for _ in range(3):
        for backend in (plain, offloaded):
            accumulate(backend, groups)
            assert backend.step().taken
    ours, theirs = parameters(offloaded), parameters(plain)
    for name in theirs:
        if not name.endswith("k_proj.bias"):  # attention does not depend on it: its gradient is rounding alone
            assert torch.allclose(ours[name], theirs[name], atol=2e-5), name


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("offload", ["none", "cpu"])
def test_bfloat16_keeps_float32_master_weights(world, stage, offload):
    """Twenty steps, together below bfloat16's resolution, add up as in float32 instead of being rounded away one by one."""
    from deepspeed.utils import safe_get_full_fp32_param

    groups = [ragged_samples()]
    settings = GRPOTrainer(zero_stage=stage, offload=offload, lr=1e-5, max_grad_norm=1e9, betas=(0.9, 0.99))
    rounded = Backend(Policy(make_model().bfloat16()), settings, world, dtype="bfloat16")
    plain = build(world, lr=1e-5)

    def flat(tensors):
        return torch.cat([tensor.flatten() for tensor in tensors])

    def masters():
        return flat(safe_get_full_fp32_param(p).clone() for p in rounded.policy.parameters())

    begun, start = parameters(plain), masters()
    for _ in range(20):
        for backend in (plain, rounded):
            accumulate(backend, groups)
            assert backend.step().taken
    ours, theirs = masters() - start, flat(parameters(plain).values()) - flat(begun.values())
    assert ours.dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(ours, theirs, dim=0) > 0.9
    assert ours.norm().item() == pytest.approx(theirs.norm().item(), rel=0.1)
    assert torch.equal(flat(parameters(rounded).values()), masters().bfloat16())


@pytest.mark.parametrize("stage", STAGES)
def test_a_gradient_that_is_not_finite_is_not_applied(world, stage):
    backend = build(world, stage)
    before = parameters(backend)
    for poison in (0, 7):
        accumulate(backend, [[s] for s in ragged_samples()], poison=poison)
        outcome = backend.step()
        assert not outcome.taken and not math.isfinite(outcome.grad_norm)
    assert all(torch.equal(before[name], tensor) for name, tensor in parameters(backend).items())
    assert backend.engine.global_steps == 0


@pytest.mark.parametrize("stage", STAGES)
def test_the_gradient_is_clipped_to_the_norm(world, stage):
    expected, norm = plain_gradient()
    found, found_norm = gradient(build_for_gradients(world, stage, max_grad_norm=norm / 4), [[s] for s in ragged_samples()])
    assert found_norm == pytest.approx(norm, rel=1e-5)
    assert difference(found, {name: grad / 4 for name, grad in expected.items()}) < 2e-5


def test_the_rate_factor_scales_every_group(world):
    backend = build(world, weight_decay=0.5)
    before = parameters(backend)
    accumulate(backend, [ragged_samples()])
    backend.step(lr_factor=0.0)
    assert all(torch.equal(before[name], tensor) for name, tensor in parameters(backend).items())
    assert backend.rates() == [0.0, 0.0]
    accumulate(backend, [ragged_samples()])
    backend.step(lr_factor=0.5)
    assert backend.rates() == [5e-3, 5e-3]


def test_decay_is_for_matrices_only(world):
    groups = build(world, weight_decay=0.5).optimizer.param_groups
    assert [(group["weight_decay"], {p.ndim for p in group["params"]}) for group in groups] == [(0.5, {2}), (0.0, {1})]


@pytest.mark.parametrize("stage", STAGES)
def test_a_saved_state_continues_bit_for_bit(world, stage, tmp_path):
    groups = [[s] for s in ragged_samples()]
    whole = build(world, stage)
    for _ in range(2):
        accumulate(whole, groups)
        whole.step()
    whole.save(tmp_path)
    later = build(world, stage)
    later.load(tmp_path)
    for backend in (whole, later):
        accumulate(backend, groups)
        backend.step()
    ours, theirs = parameters(later), parameters(whole)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert later.engine.global_steps == 3


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_bfloat16_accumulates_in_float32(world, stage):
    """Eight micro-batches of one sample and one of eight agree to what bfloat16 activations allow, discards in between."""
    samples = ragged_samples()
    norms = []
    for groups in ([samples], [[s] for s in samples]):
        policy = Policy(make_model())
        backend = Backend(policy, GRPOTrainer(zero_stage=stage, lr=1e-6), world, dtype="bfloat16")
        accumulate(backend, groups)
        norms.append(backend.step().grad_norm)
        accumulate(backend, groups, poison=len(groups) - 1)
        assert backend.step().taken is False
        accumulate(backend, groups)
        norms.append(backend.step().grad_norm)
    assert norms[0] == pytest.approx(norms[2], rel=0.02)
    assert norms[1] == pytest.approx(norms[0], rel=0.02)


def test_settings_from_file_and_launcher(monkeypatch, tmp_path, world):
    monkeypatch.delenv("ACCELERATE_DEEPSPEED_CONFIG_FILE", raising=False)
    assert zero_settings(GRPOTrainer()) == (0, "none")
    assert zero_settings(GRPOTrainer(), "bfloat16") == (1, "none")
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_ZERO_STAGE", "2")
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE", "cpu")
    assert zero_settings(GRPOTrainer()) == (2, "cpu")
    assert zero_settings(GRPOTrainer(zero_stage=3, offload="none")) == (3, "none")
    monkeypatch.delenv("ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE")
    file = GRPOTrainer(deepspeed="configs/deepspeed/zero3-offload.json")
    assert zero_settings(file) == (3, "cpu")
    zero = deepspeed_config(file, world)["zero_optimization"]
    assert zero["stage"] == 3 and zero["offload_optimizer"]["pin_memory"] is True and "sub_group_size" not in zero


@pytest.mark.parametrize(
    ("settings", "dtype", "word"),
    [
        ({"zero_stage": 0}, "bfloat16", "bfloat16"),
        ({"zero_stage": 0, "offload": "cpu"}, "float32", "offload"),
        ({"deepspeed": "nowhere.json"}, "float32", "nowhere.json"),
    ],
)
def test_what_deepspeed_has_not_is_refused(settings, dtype, word):
    with pytest.raises(BackendError, match=word):
        zero_settings(GRPOTrainer(**settings), dtype)
