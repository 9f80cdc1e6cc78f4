from dataclasses import replace

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from writer_rl.config import RolloutSection
from writer_rl.model.shape import KNOWN, ModelShape
from writer_rl.run.plan import PlanError, RunShape, activation_bytes, fewest_gpus, plan
from writer_rl.train.sampler_share import configured_share

MODEL = KNOWN["qwen2.5-3b"]
P = MODEL.parameters


def test_state_of_full_training_by_hand():
    one = plan(MODEL, RunShape(gpus=1, zero=1))
    assert (one.weights, one.gradients, one.optimizer, one.reference) == (2 * P, 6 * P, 12 * P, 2 * P)
    two = plan(MODEL, RunShape(gpus=4, zero=2))
    assert (two.weights, two.gradients, two.optimizer, two.reference) == (2 * P, P, 3 * P, 2 * P)
    three = plan(MODEL, RunShape(gpus=4, zero=3))
    assert (three.weights, three.gradients, three.optimizer, three.reference) == (P // 2, P, 3 * P, P // 2)


def test_state_of_an_adapter_by_hand():
    """Rank 16 on Qwen2.5-3B: 36 layers of 16 x (2 x 4096 + 2 x (2048 + 256) + 3 x (2048 + 11008)) parameters."""
    trained = 36 * 16 * (2 * 4096 + 2 * 2304 + 3 * 13056)
    lora = plan(MODEL, RunShape(gpus=4, zero=2, lora_rank=16))
    assert (lora.weights, lora.gradients, lora.optimizer, lora.reference) == (2 * (P + trained), trained, 3 * trained, 0)
    assert lora.sampler == plan(MODEL, RunShape(gpus=4, zero=2)).sampler, "it samples merged weights"
    whole = plan(MODEL, RunShape(gpus=1, zero=1, lora_rank=16))
    assert (whole.gradients, whole.optimizer) == (6 * trained, 12 * trained)


def test_moments_in_eight_bits_take_a_byte_and_a_scale_per_256():
    full, bytes_each = plan(MODEL, RunShape(gpus=2)), plan(MODEL, RunShape(gpus=2, eight_bit=True))
    assert full.optimizer - bytes_each.optimizer == pytest.approx(P / 2 * (8 - 2 - 8 / 256), abs=1)
    assert full.update_peak - bytes_each.update_peak == full.optimizer - bytes_each.optimizer


def test_offloading_moves_bytes_to_the_host_and_loses_none():
    resident = plan(MODEL, RunShape(gpus=2, zero=3))
    offloaded = plan(MODEL, RunShape(gpus=2, zero=3, offload_optimizer=True, offload_parameters=True))
    assert offloaded.weights == offloaded.optimizer == offloaded.gradients == 0
    assert offloaded.host - resident.host == resident.weights + resident.optimizer + resident.gradients
    assert offloaded.reference == resident.reference


def test_a_sampler_that_sleeps_pins_its_weights_on_the_host():
    assert plan(MODEL, RunShape()).host == 2 * P
    assert plan(MODEL, RunShape(sampler_sleeps=False)).host == plan(MODEL, RunShape(sampler=False)).host == 0


def test_the_samplers_share_is_what_the_plan_counts():
    settings = RolloutSection(group_size=8, networks_per_round=2, max_model_len=8192)
    config = {"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16}
    config |= {"num_key_value_heads": 2, "intermediate_size": 11008, "tie_word_embeddings": True}
    share = configured_share(config, settings, ranks=2)
    assert (share.weights, share.cache) == (2 * P, 8 * 8192 * 36_864)
    counted = plan(MODEL, RunShape(gpus=2, sequences=8, sequence_tokens=8192)).sampler
    assert share.of_card(80 * 2**30) == pytest.approx(counted / (80 * 2**30)) and share.of_card(1) == 0.95
    assert configured_share({"model_type": "mamba"}, settings, ranks=1) is None


def test_a_sampler_that_sleeps_is_not_added_to_the_update():
    asleep, awake = plan(MODEL, RunShape()), plan(MODEL, RunShape(sampler_sleeps=False))
    assert awake.update_peak - asleep.update_peak == asleep.sampler > 2 * P


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_more_gpus_never_need_more_memory_each(zero):
    peaks = [plan(MODEL, RunShape(gpus=gpus, zero=zero)).peak for gpus in (1, 2, 4, 8, 16)]
    assert peaks == sorted(peaks, reverse=True)


def test_fewest_gpus_is_the_first_that_fits():
    run = RunShape(zero=3)
    assert fewest_gpus(MODEL, run, 80) == 1
    needed = fewest_gpus(MODEL, run, 40)
    assert plan(MODEL, replace(run, gpus=needed)).fits(40)
    assert not plan(MODEL, replace(run, gpus=needed // 2)).fits(40)
    assert fewest_gpus(MODEL, run, 4) is None


def test_impossible_settings_are_refused():
    for wrong in (
        {"zero": 0},
        {"gpus": 0},
        {"offload_parameters": True},
        {"gpus": 3, "tensor_parallel": 2},
        {"micro_tokens": 0},
        {"lora_rank": -1},
    ):
        with pytest.raises(PlanError):
            RunShape(**wrong)


def test_activations_bound_what_a_real_model_saves():
    """Bytes that autograd saves in a real forward pass, fp32, without the attention's inner tensors and weights."""
    config = {
        "vocab_size": 64, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True,
    }  # fmt: skip
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("qwen2", **config))
    tokens = 256
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    saved = {}

    def keep(tensor):
        if tensor.untyped_storage().data_ptr() not in weights:
            saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        hidden = model.model(torch.randint(0, 64, (1, tokens))).last_hidden_state
    assert hidden.requires_grad
    shape = ModelShape.from_config({**config, "model_type": "qwen2"})
    run = RunShape(micro_tokens=tokens, checkpointing=False, logit_chunk=1)
    planned = activation_bytes(shape, run) * 2  # fp32 here, bf16 in the plan
    assert 0.7 < sum(saved.values()) / planned < 1.4
