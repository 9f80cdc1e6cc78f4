"""Random weights that are shaped for copying, so that a small model learns it in seconds instead of hours.

A Writer copies: names, values and entry ids stand in its prompt. Copying from anywhere in the prompt needs three things of
attention: to look one token back, to find equal tokens, and to pass on what was found. Citing a record by its id needs a fourth:
to find the line that says nearly the same, so a token has to know the words around it. From independent random weights these
come together late and suddenly; here each has a random start of its own (see mimetic initialisation, Trockman and Kolter, 2023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel

EMBEDDING_STD = 0.1
"""Tokens are distinct from the first step on; embedding and head are one matrix."""
MATCHING_STD = 0.1
"""Of the query matrix, which the key matrix equals: equal tokens attend to each other."""
PREVIOUS_BIAS = 3.0
"""Strength of the first head's preference for the previous token, in the lowest layers."""
PREVIOUS_LAYERS = 2
NEIGHBOURHOOD_BIAS = 3.0
"""Strength of the second head's preference for the tokens close before, in the lowest layer."""
NEIGHBOURHOOD_FREQUENCIES = slice(3, None)
"""Rotary frequencies that take part: without the three fastest, the score has fallen by two at about 8 tokens (head size 32)."""
NEIGHBOURHOOD_GAIN = 2.0
"""Of the mean that this head passes on, which is smaller than one token's vector."""


def shape_for_copying(model: PreTrainedModel) -> None:
    """Redraw the attention and the embedding of a Qwen2 model from torch's global generator.

    In every layer the query matrix equals the key matrix, and the value and output matrices are orthogonal and each other's
    transpose. In the lowest two layers the first head's biases are rotated so that its score peaks at the token before. In the
    lowest layer the second head's biases make it average over the last few tokens.
    Raises ValueError for a model without query biases, rotary positions, as many key heads as query heads, or a second head.
    """
    config, body = model.config, cast(Any, model.base_model)  # torch says of a submodule only that it may be a tensor
    heads = config.num_attention_heads
    if getattr(config, "model_type", "") != "qwen2" or config.num_key_value_heads != heads or heads < 2:
        raise ValueError(
            "a structured start needs a qwen2 model with at least two attention heads and as many num_key_value_heads"
        )
    size = config.hidden_size // heads
    frequencies = body.rotary_emb.inv_freq.to(torch.float32)
    with torch.no_grad():
        cast(nn.Embedding, model.get_input_embeddings()).weight.normal_(0, EMBEDDING_STD)
        for number, layer in enumerate(body.layers):
            attention = layer.self_attn
            matching = torch.randn_like(attention.q_proj.weight) * MATCHING_STD
            attention.q_proj.weight.copy_(matching)
            attention.k_proj.weight.copy_(matching)
            passing, _ = torch.linalg.qr(torch.randn(config.hidden_size, config.hidden_size))
            attention.v_proj.weight.copy_(passing)
            attention.o_proj.weight.copy_(passing.T)
            if number < PREVIOUS_LAYERS:
                # Query and key biases that agree after the rotation by one position: cos and sin of one step back.
                attention.q_proj.weight[:size] *= 0.1
                attention.k_proj.bias[: size // 2] = PREVIOUS_BIAS
                attention.q_proj.bias[: size // 2] = PREVIOUS_BIAS * torch.cos(-frequencies)
                attention.q_proj.bias[size // 2 : size] = PREVIOUS_BIAS * torch.sin(-frequencies)
            if number == 0:
                second = slice(size, 2 * size)
                attention.q_proj.weight[second] *= 0.1
                for bias in (attention.q_proj.bias, attention.k_proj.bias):
                    bias[second][: size // 2][NEIGHBOURHOOD_FREQUENCIES] = NEIGHBOURHOOD_BIAS
                attention.o_proj.weight[:, second] *= NEIGHBOURHOOD_GAIN
