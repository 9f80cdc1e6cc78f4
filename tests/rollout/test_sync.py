import math

import pytest
import torch

from rollout.checksum import named_checksums
from rollout.engine import EngineStateError
from rollout.hf.engine import HFEngine
from rollout.sync import SyncError, SyncProbe, measure, module_logprobs, sync_and_probe
from rollout.weights import named_weights

PROBE = SyncProbe.of([range(5, 60), range(30, 40)], new_tokens=6)


def shake(model, scale=0.05):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * scale)


def copies(model):
    """Weights sent by value, as an engine of its own receives them."""
    return ((name, tensor.clone()) for name, tensor in named_weights(model))


@pytest.mark.parametrize("tied", [True, False])
def test_five_updates_of_an_engine_with_its_own_weights(build_model, tokenizer, tied):
    trainer = build_model(seed=1, tie_word_embeddings=tied)
    engine = HFEngine(build_model(tie_word_embeddings=tied), tokenizer)
    for version in range(1, 6):
        shake(trainer)
        report = sync_and_probe(engine, copies(trainer), version, PROBE, module_logprobs(trainer))
        assert report.version == engine.policy_version == version
        assert report.max_difference < 1e-4 and report.tokens >= 2
        assert report.mean_difference <= report.max_difference and report.seconds > 0
    again = sync_and_probe(engine, copies(trainer), 6, PROBE, module_logprobs(trainer))
    assert again.max_difference < 1e-4, "the same weights twice"


@pytest.mark.parametrize(
    "name",
    [
        "model.embed_tokens.weight",
        "model.layers.0.self_attn.v_proj.weight",
        "model.layers.1.mlp.down_proj.weight",
        "lm_head.weight",
    ],
)
def test_one_tampered_tensor_stops_the_run_with_both_numbers(build_model, tokenizer, name):
    trainer, engine = build_model(seed=1), HFEngine(build_model(), tokenizer)
    tampered = ((n, t + 0.5 * torch.randn_like(t) if n == name else t) for n, t in copies(trainer))
    with pytest.raises(SyncError, match=r"policy 1: .*probe token log-probability -\d.*trainer -\d.*stale or corrupt") as caught:
        sync_and_probe(engine, tampered, 1, PROBE, module_logprobs(trainer))
    assert abs(caught.value.engine_logprob - caught.value.trainer_logprob) > 1e-4


def test_weights_that_never_arrived_are_noticed(build_model, tokenizer):
    trainer, engine = build_model(seed=1), HFEngine(build_model(), tokenizer)
    engine.update_weights = lambda tensors, version: [None for _ in tensors]
    with pytest.raises(SyncError):
        sync_and_probe(engine, copies(trainer), 1, PROBE, module_logprobs(trainer))


def proven(engine, trainer, tensors, version=1, dtype=torch.float32):
    """A sync with both proofs, as a run does it."""
    checksums = lambda: named_checksums(named_weights(trainer), dtype)  # noqa: E731
    return sync_and_probe(engine, tensors, version, PROBE, module_logprobs(trainer), bound=1.0, trainer_checksums=checksums)


def a_step(model, masters, lr=1e-6):
    """One step of the paper's learning rate, as AdamW takes it: nearly lr times a sign, added to float32 masters."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            masters[name] += torch.sign(torch.randn_like(masters[name])) * lr
            parameter.copy_(masters[name])


def one_bit(name):
    def flip(pairs):
        for found, tensor in pairs:
            if found == name:
                bits = tensor.view(torch.int32 if tensor.dtype == torch.float32 else torch.int16)
                bits.view(-1)[7] ^= 1
            yield found, tensor

    return flip


def swapped(pairs):
    """Two layers exchanged, as a loader that mixes up names would."""
    other = {"0": "1", "1": "0"}
    held = dict(pairs)
    for name, _ in held.items():
        parts = name.split(".")
        if parts[:2] == ["model", "layers"]:
            parts[2] = other[parts[2]]
        yield name, held[".".join(parts)]


def stale(name, old):
    return lambda pairs: ((found, old[found].clone() if found == name else tensor) for found, tensor in pairs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("fault", ["nothing arrives", "a stale tensor", "one bit", "swapped layers"])
def test_what_no_log_probability_shows_at_the_papers_rate_is_caught_bit_for_bit(build_model, tokenizer, dtype, fault):
    trainer = build_model(seed=1)
    masters = {name: parameter.detach().clone() for name, parameter in trainer.named_parameters()}
    trainer, engine = trainer.to(dtype), HFEngine(build_model().to(dtype), tokenizer)
    assert proven(engine, trainer, copies(trainer), dtype=dtype).tensors == len(trainer.state_dict())
    old = {name: tensor.clone() for name, tensor in named_weights(trainer)}
    a_step(trainer, masters)
    name = "model.layers.1.mlp.down_proj.weight"
    faults = {"a stale tensor": stale(name, old), "one bit": one_bit(name), "swapped layers": swapped}
    if fault == "nothing arrives":
        engine.update_weights = lambda tensors, version: [None for _ in tensors]
        tensors = copies(trainer)
    else:
        tensors = faults[fault](copies(trainer))
    with pytest.raises(SyncError, match="not the trainer's bit for bit, model"):
        proven(engine, trainer, tensors, 2, dtype)


def test_every_rank_stops_where_one_ranks_tensor_differs(build_model, tokenizer):
    trainer, engine = build_model(seed=1), HFEngine(build_model(), tokenizer)
    with pytest.raises(SyncError, match=r"policy 1: 1 of \d+ weight tensors .* \(on another rank\)"):
        sync_and_probe(
            engine, copies(trainer), 1, PROBE, module_logprobs(trainer), reduce_max=lambda value: max(value, 1.0),
            trainer_checksums=lambda: named_checksums(named_weights(trainer)),
        )  # fmt: skip


def test_not_a_number_is_a_difference(build_model, tokenizer):
    trainer, engine = build_model(seed=1), HFEngine(build_model(), tokenizer)

    def broken(pairs):
        return [[math.nan] * len(completion) for _, completion in pairs]

    with pytest.raises(SyncError, match="trainer nan"):
        sync_and_probe(engine, copies(trainer), 1, PROBE, broken)


def test_the_verdict_is_the_worst_of_all_ranks(build_model, tokenizer):
    trainer, engine = build_model(seed=1), HFEngine(build_model(), tokenizer)
    seen = []
    with pytest.raises(SyncError, match="largest difference 3.00e-01"):
        sync_and_probe(
            engine,
            copies(trainer),
            1,
            PROBE,
            module_logprobs(trainer),
            reduce_max=lambda v: seen.append(v) or max(v, 0.3),
        )
    assert seen[0] < 1e-4


def test_a_transfer_that_breaks_off_leaves_no_engine_that_generates(build_model, tokenizer):
    trainer, engine = build_model(seed=1), HFEngine(build_model(), tokenizer)

    def interrupted():
        yield from list(copies(trainer))[:3]
        raise OSError("link down")

    with pytest.raises(OSError, match="link down"):
        sync_and_probe(engine, interrupted(), 1, PROBE, module_logprobs(trainer))
    with pytest.raises(EngineStateError, match="update_weights"):
        engine.generate(PROBE.requests)
    assert engine.policy_version == 0
    assert sync_and_probe(engine, copies(trainer), 1, PROBE, module_logprobs(trainer)).max_difference < 1e-4


def test_a_shared_module_agrees_with_itself_and_keeps_its_mode(build_model, tokenizer):
    trainer = build_model(seed=1, attention_dropout=0.5).train()
    engine = HFEngine(trainer, tokenizer)
    shake(trainer)
    report = sync_and_probe(engine, named_weights(trainer), 1, PROBE, module_logprobs(trainer))
    assert report.max_difference < 1e-4 and trainer.training
    assert measure(engine, PROBE, module_logprobs(trainer)).max_difference < 1e-4


def test_named_weights_send_a_tied_head_under_both_names(build_model):
    tied, untied = build_model(tie_word_embeddings=True), build_model()
    assert {"model.embed_tokens.weight", "lm_head.weight"} <= {n for n, _ in named_weights(tied)}
    for model in (tied, untied):
        sent = dict(named_weights(model))
        assert sent.keys() == model.state_dict().keys()
        assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in sent.items())
        assert not any(tensor.requires_grad for tensor in sent.values())


def test_weights_are_grouped_within_the_byte_bound(build_model):
    from rollout.weights import _groups

    parameters = list(build_model().named_parameters(remove_duplicate=False))
    largest = max(p.numel() * 4 for _, p in parameters)
    groups = list(_groups(parameters, largest))
    assert [pair for group in groups for pair in group] == parameters
    assert all(sum(p.numel() * 4 for _, p in group) <= largest for group in groups) and len(groups) > 2


def test_a_probe_needs_a_prompt():
    with pytest.raises(ValueError, match="at least one prompt"):
        SyncProbe.of([])
    assert len(SyncProbe.of([range(5, 400)], max_prompt_tokens=64).requests[0].prompt_ids) == 64
