"""The structured random start: still random, and able to learn copying where an unstructured one is not."""

from __future__ import annotations

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from writer_rl.model.structured_init import shape_for_copying


def small_model(key_heads: int = 2, hidden_size: int = 32) -> Qwen2ForCausalLM:
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=64, hidden_size=hidden_size, intermediate_size=32, num_hidden_layers=3, num_attention_heads=2,
        num_key_value_heads=key_heads, max_position_embeddings=64, tie_word_embeddings=True,
    )  # fmt: skip
    return Qwen2ForCausalLM(config).eval()


@torch.no_grad()
def attention_by_distance(model: Qwen2ForCausalLM, layer: int, head: int = 0) -> list[float]:
    """Mean attention of a head to the token 0, 1, 2, 3 places back."""
    model.config._attn_implementation = "eager"
    torch.manual_seed(1)
    weights = model(torch.randint(0, 64, (4, 24)), output_attentions=True).attentions[layer][:, head]
    return [float(weights.diagonal(offset=-back, dim1=-2, dim2=-1)[:, 4:].mean()) for back in range(4)]


def test_the_first_head_of_the_lowest_layers_looks_one_token_back():
    model = small_model()
    shape_for_copying(model)
    for layer in (0, 1):
        here, previous, *further = attention_by_distance(model, layer)
        assert previous > 1.5 * max(here, *further)
    here, previous, *_ = attention_by_distance(model, 2)
    assert previous < here


def test_the_second_head_of_the_lowest_layer_averages_over_the_last_tokens():
    model = small_model(hidden_size=64)
    shape_for_copying(model)
    near, one_back = attention_by_distance(model, layer=0, head=1), attention_by_distance(model, layer=0, head=0)
    assert near == sorted(near, reverse=True)
    assert near[0] < 2.5 * near[3] and near[3] > 2 * one_back[3]


def test_what_is_found_is_passed_on_unchanged():
    model = small_model()
    shape_for_copying(model)
    attention = model.model.layers[2].self_attn
    assert torch.allclose(attention.o_proj.weight @ attention.v_proj.weight, torch.eye(32), atol=1e-5)
    assert torch.equal(attention.q_proj.weight, attention.k_proj.weight)


def test_another_seed_gives_another_start():
    starts = []
    for seed in (0, 0, 1):
        model = small_model()
        torch.manual_seed(seed)
        shape_for_copying(model)
        starts.append(model.model.layers[0].self_attn.v_proj.weight.clone())
    assert torch.equal(starts[0], starts[1])
    assert not torch.allclose(starts[0], starts[2])


def test_a_model_with_shared_key_heads_is_refused():
    with pytest.raises(ValueError, match="num_key_value_heads"):
        shape_for_copying(small_model(key_heads=1))
