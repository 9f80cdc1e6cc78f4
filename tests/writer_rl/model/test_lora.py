"""A low-rank adapter: begins as its base, trains alone, is the reference when off, and leaves the base as it was."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM

from rollout.weights import named_weights
from tests.writer_rl.grpo.test_update import samples, settings
from tests.writer_rl.tiny_run import make_model, make_tokenizer, save_writer
from tests.writer_rl.train.test_backend import RATE, accumulate, parameters, ragged_samples
from writer_rl.config import GRPOTrainer, LoRASection, ModelSection
from writer_rl.grpo.update import update_policy
from writer_rl.model.batching import collate
from writer_rl.model.lora import ADAPTER, AdapterOff, add_adapter, merged
from writer_rl.model.policy import Policy, PolicyError, load_policy
from writer_rl.train.backend import Backend
from writer_rl.train.checkpoint import save_hf, whole_weights
from writer_rl.train.distributed import connect

ALL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
STAGES = [0, 1, 2, 3]
IDS = torch.tensor([[3, 9, 12, 7, 1, 20]])


@pytest.fixture(scope="module")
def world():
    return connect(threads=1)


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    return save_writer(tmp_path_factory.mktemp("writer"))


def section(**lora):
    return ModelSection(lora=LoRASection(**({"rank": 4, "alpha": 8.0} | lora)))


def adapted(seed=0, tied=True, dtype="float32", **lora):
    return add_adapter(Policy(make_model(tied=tied).to(getattr(torch, dtype))), section(**lora), seed)


def shake(policy, seed=1):
    """An adapter that does something, as after training."""
    generator = torch.Generator().manual_seed(seed)
    for name, p in policy.model.named_parameters():
        if "lora_" in name:
            p.data.copy_(torch.randn(p.shape, generator=generator) * 0.2)
    return policy


def logprobs(policy):
    with torch.no_grad():
        return policy(collate(ragged_samples()))[0]


def is_adapter(name):
    return "lora_" in name


def test_it_begins_as_its_base_and_as_its_reference():
    policy = adapted()
    assert torch.equal(logprobs(policy), logprobs(Policy(make_model())))
    assert torch.equal(AdapterOff(policy)(collate(ragged_samples()))[0], logprobs(policy))


def test_off_it_is_the_base_whatever_was_trained():
    policy = shake(adapted())
    base = logprobs(Policy(make_model()))
    on = logprobs(policy)
    reference, entropies = AdapterOff(policy)(collate(ragged_samples()), entropy=True)
    assert torch.equal(reference, base) and not reference.requires_grad and entropies is not None
    assert (on - base).abs().max() > 0.1
    assert torch.equal(logprobs(policy), on), "and on again"
    assert {is_adapter(n) for n, p in policy.model.named_parameters() if p.requires_grad} == {True}


def test_only_the_adapter_is_trained_and_only_on_the_chosen_layers():
    policy = adapted(target_modules=("q_proj", "down_proj"))
    policy(collate(ragged_samples()))[0].sum().backward()
    with_gradient = {name for name, p in policy.model.named_parameters() if p.grad is not None}
    assert all(is_adapter(name) for name in with_gradient)
    assert {name.split(".lora_")[0].rpartition(".")[2] for name in with_gradient} == {"q_proj", "down_proj"}
    assert len(with_gradient) == 2 * 2 * 2


def test_it_is_seeded_and_leaves_the_generator_alone():
    before = torch.get_rng_state()
    one, same, other = (dict(adapted(seed).model.named_parameters()) for seed in (1, 1, 2))
    name = "model.layers.0.self_attn.q_proj.lora_A.default.weight"
    assert torch.equal(one[name], same[name]) and not torch.equal(one[name], other[name])
    torch.set_rng_state(before)
    assert adapted() is not None and torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("tied", [True, False])
def test_merged_weights_are_a_plain_models_and_compute_the_same(tied):
    policy = shake(adapted(tied=tied))
    before = {name: p.clone() for name, p in policy.model.named_parameters()}
    plain = make_model(tied=tied, seed=5)
    pairs = dict(merged(policy.model, named_weights(policy.model)))
    assert pairs.keys() == dict(plain.named_parameters(remove_duplicate=False)).keys()
    plain.load_state_dict(pairs)
    with torch.no_grad():
        assert torch.allclose(plain(input_ids=IDS).logits, policy.model(input_ids=IDS).logits, atol=1e-5)
    for _ in range(3):
        dict(merged(policy.model, named_weights(policy.model)))
    assert all(torch.equal(before[name], p) for name, p in policy.model.named_parameters()), "no drift, however often"


def test_merging_is_the_formula():
    """W + alpha / rank B A, by hand, in the matrix's own dtype."""
    policy = shake(adapted(rank=3, alpha=6.0))
    policy.model.bfloat16()
    named = dict(policy.model.named_parameters())
    layer = "model.layers.1.mlp.up_proj"
    w, a, b = (named[f"{layer}.{part}.weight"].double() for part in ("base_layer", "lora_A.default", "lora_B.default"))
    found = dict(merged(policy.model, named_weights(policy.model)))
    assert torch.equal(found[f"{layer}.weight"], (w + 2.0 * b @ a).float().bfloat16())
    assert torch.equal(found["model.layers.1.self_attn.q_proj.bias"], named["model.layers.1.self_attn.q_proj.base_layer.bias"])


def test_a_model_without_an_adapter_passes_as_it_is():
    model = make_model()
    pairs = list(merged(model, named_weights(model)))
    assert all(tensor.data_ptr() == p.data_ptr() for (_, tensor), p in zip(pairs, model.parameters(), strict=False))
    policy = Policy(make_model())
    assert add_adapter(policy, section(rank=0)) is policy and all(p.requires_grad for p in policy.parameters())


def test_a_part_that_is_missing_is_an_error():
    policy = adapted()
    pairs = [pair for pair in named_weights(policy.model) if not pair[0].endswith("0.mlp.up_proj.lora_B.default.weight")]
    with pytest.raises(ValueError, match="layers.0.mlp.up_proj"):
        dict(merged(policy.model, pairs))


@pytest.mark.parametrize(
    ("lora", "init", "words"),
    [
        ({"target_modules": ("qproj",)}, "pretrained", ("qproj", "q_proj", "down_proj")),
        ({"target_modules": ("lm_head",)}, "pretrained", ("lm_head", "linear layers are")),
        ({"target_modules": ("embed_tokens",)}, "pretrained", ("embed_tokens",)),
        ({}, "random", ("model.init random", "pretrained")),
    ],
)
@pytest.mark.parametrize("tied", [True, False])
def test_what_has_no_adapter_is_refused(lora, init, words, tied):
    with pytest.raises(PolicyError) as caught:
        add_adapter(Policy(make_model(tied=tied)), section(**lora).model_copy(update={"init": init}))
    assert all(word in str(caught.value) for word in words) and "\n" not in str(caught.value)


def test_full_rank_takes_the_step_of_full_training(world):
    """With A orthogonal, B zero and alpha = rank, a plain gradient step on the adapter is the one on the matrix: -lr G A^T A."""

    def sgd(module, _):
        return torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=RATE)

    hidden = 32
    policy = adapted(rank=hidden, alpha=float(hidden), target_modules=("q_proj", "k_proj", "v_proj", "o_proj"))
    for name, p in policy.model.named_parameters():
        if "lora_A" in name:
            torch.nn.init.orthogonal_(p, generator=torch.Generator().manual_seed(3))
    whole = Policy(make_model())
    chosen = [name for name, _ in whole.model.named_parameters() if name.endswith("_proj.weight") and "self_attn" in name]
    whole.requires_grad_(False)
    for name in chosen:
        whole.model.get_parameter(name).requires_grad_(True)
    steps = []
    for trained in (policy, whole):
        before = dict(merged(trained.model, [(n, p.detach().clone()) for n, p in trained.model.named_parameters()]))
        backend = Backend(trained, GRPOTrainer(zero_stage=0, max_grad_norm=1e9), world, sgd)
        accumulate(backend, [ragged_samples()])
        assert backend.step().taken
        after = dict(merged(trained.model, trained.model.named_parameters()))
        steps.append({name: (after[name] - before[name]) / RATE for name in chosen})
    for name in chosen:
        assert torch.allclose(steps[0][name], steps[1][name], atol=1e-5, rtol=1e-4), name


@pytest.mark.parametrize(("stage", "dtype"), [(s, "float32") for s in STAGES] + [(s, "bfloat16") for s in STAGES[1:]])
def test_an_update_changes_the_adapter_only_and_the_reference_stays(world, stage, dtype):
    trainer = settings(zero_stage=stage, epochs=2)
    policy = adapted(dtype=dtype)
    backend = Backend(policy, trainer, world, dtype=dtype)
    before = parameters(backend)
    reference = AdapterOff(policy)
    report = update_policy(backend, reference, samples(), trainer)
    assert (report.steps, report.skipped) == (2, None)
    assert report.epochs[0].kl == 0.0 and report.epochs[1].kl > 0
    after = parameters(backend)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed and all(is_adapter(name) for name in changed)
    update_policy(backend, reference, samples(), trainer)
    assert all(torch.equal(before[n], t) for n, t in parameters(backend).items() if not is_adapter(n))


def moved(world, stage=0, dtype="float32", checkpointing=False, writer=None):
    """The merged weights' change by one update of two epochs."""
    lora = LoRASection(rank=4, alpha=8.0)
    model = ModelSection(path=str(writer), dtype=dtype, gradient_checkpointing=checkpointing, lora=lora)
    policy = add_adapter(load_policy(model), model)
    trainer = settings(zero_stage=stage, lr=1e-2)
    backend = Backend(policy, trainer, world, dtype=dtype)
    report = update_policy(backend, AdapterOff(policy), samples(), trainer)
    assert report.steps == 2
    return dict(merged(policy.model, named_weights(policy.model))), report


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_every_stage_makes_the_same_update(world, stage, writer):
    (plain, one), (sharded, other) = moved(world, writer=writer), moved(world, stage, writer=writer)
    assert other.epochs[1].kl == pytest.approx(one.epochs[1].kl, rel=1e-3)
    assert all(torch.allclose(plain[name], sharded[name], atol=2e-4) for name in plain)


def test_gradient_checkpointing_makes_the_same_update(world, writer):
    (plain, _), (recomputed, _) = moved(world, writer=writer), moved(world, checkpointing=True, writer=writer)
    assert all(torch.allclose(plain[name], recomputed[name], atol=1e-5) for name in plain)


def test_bfloat16_follows_float32(world, writer):
    """Two epochs in bfloat16 with float32 master weights: losses and KL as near as eight bits of mantissa allow."""
    (_, exact), (_, rounded) = moved(world, writer=writer), moved(world, 1, "bfloat16", writer=writer)
    for one, other in zip(exact.epochs, rounded.epochs, strict=True):
        assert other.loss == pytest.approx(one.loss, abs=0.05)
        assert other.grad_norm == pytest.approx(one.grad_norm, rel=0.1)
    assert rounded.epochs[1].kl == pytest.approx(exact.epochs[1].kl, rel=0.3)


@pytest.mark.parametrize("stage", STAGES)
def test_a_saved_state_continues_bit_for_bit(world, stage, tmp_path):
    """Another adapter on the same base; that base is not saved."""
    groups = [[s] for s in ragged_samples()]
    trainer = GRPOTrainer(zero_stage=stage, lr=1e-2)
    whole = Backend(adapted(), trainer, world)
    for _ in range(2):
        accumulate(whole, groups)
        whole.step()
    whole.save(tmp_path)
    later = Backend(add_adapter(Policy(make_model()), section(), seed=9), trainer, world)
    later.load(tmp_path)
    for backend in (whole, later):
        accumulate(backend, groups)
        backend.step()
    ours, theirs = parameters(later), parameters(whole)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("stage", [0, 3])
def test_the_saved_folder_is_plain_and_its_adapter_is_pefts(world, stage, writer, tmp_path):
    from peft import PeftModel

    model = ModelSection(path=str(writer), lora=LoRASection(rank=4, alpha=8.0))
    policy = shake(add_adapter(load_policy(model), model))
    expected = logprobs(policy)
    backend = Backend(policy, GRPOTrainer(zero_stage=stage), world)
    save_hf(backend.policy, whole_weights(backend), make_tokenizer(), tmp_path / "model")
    whole = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert torch.allclose(logprobs(Policy(whole)), expected, atol=1e-5)
    base = AutoModelForCausalLM.from_pretrained(writer)
    apart = PeftModel.from_pretrained(base, tmp_path / "model" / ADAPTER)
    assert torch.equal(logprobs(Policy(apart)), expected)
    stored = json.loads((tmp_path / "model" / ADAPTER / "adapter_config.json").read_text())
    assert (stored["r"], stored["lora_alpha"], stored["inference_mode"]) == (4, 8.0, True)
    assert stored["base_model_name_or_path"] == str(writer)


def test_dropout_is_the_adapters_alone_and_off_in_evaluation():
    policy = shake(adapted(dropout=0.5)).train()
    batch = collate(ragged_samples())
    one, other = policy(batch)[0], policy(batch)[0]
    assert not torch.equal(one, other)
    assert torch.equal(AdapterOff(policy)(batch)[0], AdapterOff(policy)(batch)[0])
    policy.eval()
    assert torch.equal(policy(batch)[0], policy(batch)[0])
