"""The shape of the tiny Writer: a Qwen2 model of a million parameters that learns on two CPU cores.

    python -m writer_rl.model.tiny runs/blank

writes its configuration and tokenizer, from which `launch/sft.py` starts with `model.init: structured`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from memory_env.corpus.invented import LETTER_GROUPS
from memory_env.corpus.vocabulary import function_words
from writer_rl.model.tokenizer import CONTEXT, build_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen2Config


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer of the embedded corpus."""
    return build_tokenizer(function_words(), LETTER_GROUPS)


def tiny_config(tokenizer: PreTrainedTokenizerFast) -> Qwen2Config:
    """The model's configuration for a tokenizer.

    Embedding and head are one matrix, so that a token is written by the vector it was read by. There are as many key heads as
    query heads, which the structured start of writer_rl/model/structured_init.py needs.
    """
    from transformers import Qwen2Config

    return Qwen2Config(
        architectures=["Qwen2ForCausalLM"],
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        intermediate_size=384,
        max_position_embeddings=CONTEXT,
        initializer_range=0.02,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        use_cache=True,
    )


def write_blank(folder: Path) -> None:
    """Configuration and tokenizer without weights."""
    tokenizer = tiny_tokenizer()
    tokenizer.save_pretrained(folder)
    tiny_config(tokenizer).save_pretrained(folder)


if __name__ == "__main__":
    write_blank(Path(sys.argv[1]))
