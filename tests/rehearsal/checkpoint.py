"""A stand-in for Qwen2.5-3B-Instruct: the same architecture and chat format, a few hundred thousand random weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from memory_env import corpus
from memory_env.default_prompts import PROMPTS

CHAT_TEMPLATE = (
    "{%- for message in messages -%}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"
)
CONTEXT = 4096
VOCABULARY = 2000


def write_checkpoint(folder: Path) -> None:
    """A Hugging Face folder: bfloat16 weights, configuration, a byte-level BPE tokenizer with Qwen's chat format."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    pieces.train_from_iterator(_texts(), trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=CHAT_TEMPLATE,
        model_max_length=CONTEXT,
    )
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,  # of 32 dimensions each, the fewest that vLLM's kernel for CPUs takes
        num_key_value_heads=1,
        intermediate_size=128,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _texts() -> Iterator[str]:
    yield from (file.read_text(encoding="utf-8") for file in sorted(PROMPTS.glob("*.jinja")))
    for network in corpus.train_networks():
        yield from (message.content for message in network.messages)
