"""Tiny random models and a real tokenizer, both made here: byte-level BPE, ChatML template, special tokens."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<pad>"]


def make_tokenizer(chat_template=CHAT_TEMPLATE):
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    corpus = [
        '{"actions":[{"action":"ADD","owner":"Ana","source":"Ben","content":"Ana likes tea"}]}',
        "user assistant system",
    ]
    trainer = trainers.BpeTrainer(
        vocab_size=340,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(corpus, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<pad>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|endoftext|>", "<|im_start|>"]})
    tokenizer.chat_template = chat_template
    return tokenizer


def make_model(vocab=340, seed=0, sharpness=20.0, **overrides):
    """A random Qwen2 with distinct next-token distributions (``sharpness`` scales the output head)."""
    torch.manual_seed(seed)
    settings = dict(
        vocab_size=vocab, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=64, max_position_embeddings=512, tie_word_embeddings=False, bos_token_id=None,
        eos_token_id=2, pad_token_id=3, attention_dropout=0.0,
    )  # fmt: skip
    model = Qwen2ForCausalLM(Qwen2Config(**{**settings, **overrides}))
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(sharpness)
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(std=0.02)
    return model.eval()


@pytest.fixture(scope="session")
def tokenizer():
    return make_tokenizer()


@pytest.fixture
def build_tokenizer():
    return make_tokenizer


@pytest.fixture
def build_model():
    return make_model


@pytest.fixture
def model():
    return make_model()


@pytest.fixture(scope="session")
def forward_logprobs():
    """Raw log-probabilities of a completion the way a trainer computes them: one unpadded forward, no cache."""

    def compute(model, prompt_ids, completion_ids):
        ids = torch.tensor([[*prompt_ids, *completion_ids]])
        with torch.no_grad():
            logits = model(input_ids=ids, use_cache=False).logits[0, len(prompt_ids) - 1 : -1].float()
        return torch.log_softmax(logits, -1).gather(-1, torch.tensor(completion_ids)[:, None])[:, 0]

    return compute
