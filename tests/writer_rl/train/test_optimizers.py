"""Muon beside AdamW: equal to the slow definition, resumable, and refused where matrices are in pieces; AdamW in 8 bits."""

import copy
import sys

import numpy as np
import pytest
import torch
from torch import nn

from tests.writer_rl.processes import train
from tests.writer_rl.tiny_run import make_model, save_config
from tests.writer_rl.train.test_backend import accumulate, ragged_samples
from tests.writer_rl.train.test_backend import parameters as whole_parameters
from writer_rl.config import GRPOTrainer, SFTTrainer
from writer_rl.model.policy import Policy
from writer_rl.train import optimizers
from writer_rl.train.backend import Backend, adamw
from writer_rl.train.distributed import connect
from writer_rl.train.optimizers import MuonAdamW, OptimizerError, adamw8bit, muon_and_adamw, optimizer_factory, orthogonal

SHAPES = [(6, 6), (4, 10), (10, 4), (6, 6)]


def parameters(seed=0):
    generator = torch.Generator().manual_seed(seed)
    matrices = [nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]
    others = [nn.Parameter(torch.randn(shape, generator=generator)) for shape in [(7, 3), (5,)]]
    return matrices, others


def give_gradients(step, *groups):
    generator = torch.Generator().manual_seed(100 + step)
    for p in [p for group in groups for p in group]:
        p.grad = torch.randn(p.shape, generator=generator)


def slow_muon(matrix, gradients, lr, weight_decay):
    """One matrix, one step after the other, float64, from the text of the definition."""
    x, buffer = matrix.astype(np.float64), np.zeros(matrix.shape)
    rows, columns = matrix.shape
    for gradient in gradients:
        buffer = 0.95 * buffer + gradient
        u = gradient + 0.95 * buffer
        if rows > columns:
            u = u.T
        u = u / (np.sqrt((u**2).sum()) + 1e-7)
        for _ in range(5):
            a = u @ u.T
            u = 3.4445 * u + (-4.7750 * a + 2.0315 * a @ a) @ u
        if rows > columns:
            u = u.T
        x = x * (1 - lr * weight_decay) - lr * 0.2 * np.sqrt(max(rows, columns)) * u
    return x


def test_matrices_follow_the_slow_definition():
    matrices, others = parameters()
    begun = [p.detach().numpy().copy() for p in matrices]
    optimizer = MuonAdamW(matrices, others, matrix_lr=0.05, lr=0.01, weight_decay=0.1)
    gradients = [[] for _ in matrices]
    for step in range(4):
        give_gradients(step, matrices, others)
        for kept, p in zip(gradients, matrices, strict=True):
            kept.append(p.grad.numpy().astype(np.float64))
        optimizer.step()
    for start, p, given in zip(begun, matrices, gradients, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), slow_muon(start, given, 0.05, 0.1), rtol=2e-4, atol=2e-5)


def test_the_rest_is_adamw():
    (matrices, others), (_, twins) = parameters(), parameters()
    ours = MuonAdamW(matrices, others, matrix_lr=0.05, lr=0.01, betas=(0.8, 0.9), eps=1e-7, weight_decay=0.1)
    table, vector = twins
    theirs = torch.optim.AdamW(
        [{"params": [table]}, {"params": [vector], "weight_decay": 0.0}], lr=0.01, betas=(0.8, 0.9), eps=1e-7, weight_decay=0.1
    )
    for step in range(5):
        give_gradients(step, others)
        for p, twin in zip(others, twins, strict=True):
            twin.grad = p.grad.clone()
        ours.step()
        theirs.step()
    for p, twin in zip(others, twins, strict=True):
        torch.testing.assert_close(p, twin)


def test_a_restored_optimizer_goes_on_bit_for_bit():
    (matrices, others), (matrices_2, others_2) = parameters(), parameters(seed=9)
    first = MuonAdamW(matrices, others, matrix_lr=0.05, lr=0.01)
    for step in range(3):
        give_gradients(step, matrices, others)
        first.step()
    second = MuonAdamW(matrices_2, others_2, matrix_lr=0.5, lr=0.5)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for p, twin in zip(matrices + others, matrices_2 + others_2, strict=True):
        twin.data.copy_(p.data)
    for step in range(3, 6):
        give_gradients(step, matrices, others)
        give_gradients(step, matrices_2, others_2)
        first.step()
        second.step()
    for p, twin in zip(matrices + others, matrices_2 + others_2, strict=True):
        assert torch.equal(p, twin)


def test_orthogonal_evens_out_singular_values_and_keeps_their_vectors():
    generator = torch.Generator().manual_seed(1)
    stack = torch.randn(3, 8, 20, generator=generator)
    for made, given in zip(orthogonal(stack), stack, strict=True):
        values = torch.linalg.svdvals(made)
        assert values.min() > 0.6 and values.max() < 1.3
        u, _, v = torch.linalg.svd(given, full_matrices=False)
        assert (made - u @ v).norm() / (u @ v).norm() < 0.3
    tall = stack.transpose(1, 2).contiguous()
    torch.testing.assert_close(orthogonal(tall), orthogonal(stack).transpose(1, 2), rtol=1e-4, atol=1e-5)
    assert torch.equal(orthogonal(torch.zeros(1, 3, 3)), torch.zeros(1, 3, 3))


@pytest.mark.parametrize("tied", [True, False])
def test_embedding_and_head_are_adamws_and_every_parameter_is_trained_once(tied):
    model = make_model(tied=tied)
    optimizer = muon_and_adamw(model, SFTTrainer(optimizer="muon", matrix_lr=0.1, lr=0.2))
    rule = {id(p): group["rule"] for group in optimizer.param_groups for p in group["params"]}
    assert len(rule) == sum(len(group["params"]) for group in optimizer.param_groups) == len(list(model.parameters()))
    for name, p in model.named_parameters():
        matrix = p.dim() == 2 and "embed_tokens" not in name and "lm_head" not in name
        assert rule[id(p)] == ("muon" if matrix else "adamw"), name
    assert {group["rule"]: group["lr"] for group in optimizer.param_groups} == {"muon": 0.1, "adamw": 0.2}


def test_parameters_without_a_gradient_stay():
    matrices, others = parameters()
    before = [p.detach().clone() for p in matrices + others]
    optimizer = MuonAdamW(matrices, others, matrix_lr=0.05, lr=0.01, weight_decay=0.1)
    give_gradients(0, matrices[:1])
    optimizer.step()
    moved = [not torch.equal(p, old) for p, old in zip(matrices + others, before, strict=True)]
    assert moved == [True] + [False] * (len(before) - 1)


@pytest.mark.parametrize(
    ("stage", "ranks", "possible"),
    [(0, 1, True), (0, 8, True), (1, 1, True), (2, 1, True), (1, 2, False), (2, 2, False), (3, 1, False), (3, 2, False)],
)
def test_muon_is_refused_where_zero_shards_matrices(stage, ranks, possible):
    settings = SFTTrainer(optimizer="muon")
    if possible:
        assert optimizer_factory(settings, stage, ranks) is muon_and_adamw
    else:
        with pytest.raises(OptimizerError, match="trainer.zero_stage 0"):
            optimizer_factory(settings, stage, ranks)
    assert optimizer_factory(SFTTrainer(optimizer="adamw"), stage, ranks) is adamw


def test_grpo_takes_the_configured_optimizer_too(tmp_path):
    config = save_config(tmp_path, {"trainer.optimizer": "muon", "trainer.zero_stage": 3})
    assert train(config, output=tmp_path / "log") == [2]
    assert "muon needs whole matrices" in (tmp_path / "log.0").read_text()


def test_only_matrices_are_muons():
    with pytest.raises(ValueError, match="matrices only"):
        MuonAdamW([nn.Parameter(torch.zeros(3))], [], matrix_lr=0.1, lr=0.1)


@pytest.fixture(scope="module")
def world():
    return connect(threads=1)


def eight_bit(world, stage, lr=1e-3, dtype="float32", **sizes):
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed (the extra eightbit)")
    trainer = GRPOTrainer(optimizer="adamw8bit", zero_stage=stage, lr=lr, weight_decay=0.1)
    policy = Policy(make_model(**sizes).to(getattr(torch, dtype)))
    return Backend(policy, trainer, world, optimizer_factory(trainer, stage, 1), dtype=dtype)


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_moments_in_eight_bits_take_about_adamws_steps(world, stage):
    """Ten steps, with matrices large enough for 8 bits: the parameters' change is AdamW's up to a few percent of its length."""
    sizes = {"hidden_size": 128, "intermediate_size": 64, "num_hidden_layers": 1}
    groups = [ragged_samples()]
    exact = Backend(Policy(make_model(**sizes)), GRPOTrainer(zero_stage=0, lr=1e-3, weight_decay=0.1), world)
    rounded = eight_bit(world, stage, **sizes)
    begun = whole_parameters(exact)
    for _ in range(10):
        for backend in (exact, rounded):
            accumulate(backend, groups)
            assert backend.step().taken
    theirs, ours = whole_parameters(exact), whole_parameters(rounded)
    for name in theirs:
        if name.endswith("k_proj.bias"):
            continue  # attention does not depend on it: its gradient is rounding alone
        moved, error = (theirs[name] - begun[name]).norm(), (ours[name] - theirs[name]).norm()
        assert error < 0.1 * moved, f"{name}: {error / moved:.3f}"


def test_moments_really_are_bytes(world):
    backend = eight_bit(world, 1)
    accumulate(backend, [ragged_samples()])
    backend.step()
    states = [state for state in backend.optimizer.optimizer.state.values() if state["state1"].numel() >= 4096]
    assert states and all(state[name].dtype == torch.uint8 for state in states for name in ("state1", "state2"))


@pytest.mark.parametrize(("stage", "dtype"), [(0, "float32"), (1, "bfloat16"), (2, "float32"), (3, "bfloat16")])
def test_eight_bit_moments_are_saved_and_go_on_bit_for_bit(world, stage, dtype, tmp_path):
    whole = eight_bit(world, stage, dtype=dtype)
    for _ in range(2):
        accumulate(whole, [ragged_samples()])
        whole.step()
    whole.save(tmp_path)
    later = eight_bit(world, stage, dtype=dtype)
    later.load(tmp_path)
    for backend in (whole, later):
        accumulate(backend, [ragged_samples()])
        backend.step()
    ours, theirs = whole_parameters(later), whole_parameters(whole)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_no_group_of_the_eight_bit_optimizer_is_longer_than_its_kernels_can_count(monkeypatch):
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed (the extra eightbit)")
    monkeypatch.setattr(optimizers, "EIGHT_BIT_ELEMENTS", 3000)
    model = make_model()
    groups = adamw8bit(model, GRPOTrainer(weight_decay=0.1)).param_groups
    assert all(sum(p.numel() for p in group["params"]) <= 3000 for group in groups)
    assert len(groups) > 3 and len({id(p) for g in groups for p in g["params"]}) == len(list(model.parameters()))
    assert all(group["weight_decay"] == (0.1 if p.dim() > 1 else 0.0) for group in groups for p in group["params"])


def test_eight_bits_without_bitsandbytes_are_refused_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    monkeypatch.setitem(sys.modules, "bitsandbytes.optim", None)
    with pytest.raises(OptimizerError, match="pip install bitsandbytes") as caught:
        optimizer_factory(GRPOTrainer(optimizer="adamw8bit"), 1, 2)
    assert "\n" not in str(caught.value)
