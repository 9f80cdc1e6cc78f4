"""Models that can't take a tree are trained the padded way, and one line says why."""

import pytest
import torch

from tests.writer_rl.tiny_run import make_model
from writer_rl.config import GRPOTrainer
from writer_rl.model.policy import Policy
from writer_rl.train.backend import Backend
from writer_rl.train.distributed import connect
from writer_rl.train.tree_check import checked_packing, tree_problem

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 22}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


@pytest.fixture(scope="module")
def world():
    return connect(threads=1)


def build(kind, **options):
    from transformers import AutoConfig, AutoModelForCausalLM

    implementation = options.pop("attn_implementation", "sdpa")
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **(SIZES | SPECIAL | options))
    return AutoModelForCausalLM.from_config(config, attn_implementation=implementation)


def problem(model):
    policy = Policy(model).eval()
    return tree_problem(policy, policy.head.weight, torch.device("cpu"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_plain_decoder_passes(dtype):
    assert problem(make_model().to(dtype)) is None


def test_experts_without_capacity_pass():
    assert problem(build("mixtral", num_key_value_heads=2)) is None


UNFIT = {
    "window": ("mistral", {"sliding_window": 4, "num_key_value_heads": 2}),
    "attention of its own": ("bloom", {"n_head": 4, "n_layer": 2, "attn_implementation": "eager"}),
    "eager": ("qwen2", {"attn_implementation": "eager", "num_key_value_heads": 2}),
    "state space": ("falcon_h1", {"num_key_value_heads": 2, "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8}),
    "linear attention": ("qwen3_next", {"num_key_value_heads": 2, "head_dim": 8}),
    "convolution": ("lfm2", {"num_key_value_heads": 2, "layer_types": ["conv", "full_attention"]}),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_model_that_mixes_tokens_in_another_way_is_found_out(name):
    """With random weights, where a leak between samples is as small as rounding."""
    kind, options = UNFIT[name]
    said = problem(build(kind, **options))
    assert said and "\n" not in said


def test_the_run_goes_on_padded_and_says_so(world):
    backend = Backend(
        Policy(build("qwen2", attn_implementation="eager", num_key_value_heads=2)), GRPOTrainer(zero_stage=0), world
    )
    settings, line = checked_packing(GRPOTrainer(), backend)
    assert settings.packing == "padded"
    assert line.startswith("trainer.packing: padded") and "eager" in line


def test_a_reference_that_can_not_decides_for_both(world):
    backend = Backend(Policy(make_model()), GRPOTrainer(zero_stage=0), world)
    assert checked_packing(GRPOTrainer(), backend) == (GRPOTrainer(), None)
    reference = Policy(build("qwen2", attn_implementation="eager", num_key_value_heads=2))
    assert checked_packing(GRPOTrainer(), backend, reference)[0].packing == "padded"


def test_dropout_that_is_on_is_not_shared(world):
    model = make_model()
    policy = Policy(model)
    model.model.layers[0].mlp.add_module("dropout", torch.nn.Dropout(0.1))
    settings, line = checked_packing(GRPOTrainer(), Backend(policy, GRPOTrainer(zero_stage=0), world))
    assert settings.packing == "padded" and "dropout" in line


def test_who_asks_for_padding_is_not_checked(world):
    settings = GRPOTrainer(packing="padded")
    assert checked_packing(settings, None) == (settings, None)
