"""A Writer of a few thousand parameters, two small chats and their teacher: enough to run the real trainers in seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

NOOP = '{"actions":[{"action":"NOOP"}]}'
ADD = (
    '{"actions":[{"action":"ADD","owner":"Ann","source":"Ann","layer":"per_speaker_core","utype":"fact","content":"likes tea"}]}'
)
EMPTY = '{"actions":[]}'
WORDS = [NOOP, ADD, EMPTY, "Ann", "Bob", "likes", "tea", "coffee", ":", "-", "hello", "now", "memory", "members", "messages"]
SPECIAL = ["<pad>", "<unk>", "<|im_start|>", "<|im_end|>", "system", "user", "assistant"]
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|> {{ m.role }} {{ m.content }} <|im_end|> {% endfor %}"
    "{% if add_generation_prompt %}<|im_start|> assistant {% endif %}"
)
PROMPT = "members : {roster}\nmemory : {heads}\nmessages : {messages}\n"


def make_tokenizer() -> Any:
    """Whole words; each of three outputs is a single token, so that even random weights sometimes write a valid one."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: index for index, word in enumerate(SPECIAL + WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=CHAT_TEMPLATE,
    )


def make_model(vocabulary: int = len(SPECIAL) + len(WORDS), seed: int = 0, tied: bool = True, **sizes: int) -> Any:
    """A random Qwen2 of a few thousand parameters."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    shape = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 48,
    }
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=vocabulary, tie_word_embeddings=tied, max_position_embeddings=512, initializer_range=0.2, **(shape | sizes)
    )
    config.eos_token_id = SPECIAL.index("<|im_end|>")
    return Qwen2ForCausalLM(config)


def save_writer(folder: Path, **options: Any) -> Path:
    """A model directory: weights, configuration, tokenizer with a chat template.

    The tokenizer is saved as transformers reads it beside a qwen2 configuration, so that its file and transformers agree.
    """
    from transformers import AutoTokenizer

    make_model(**options).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    return folder


def save_chats(folder: Path, networks: int = 2, sessions: int = 2) -> None:
    """networks/*.json in the native format, trajectories/*.json with the teacher's actions."""
    for kind in ("networks", "trajectories"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for number in range(networks):
        name = f"chat_{number}"
        turns = [[("Ann", f"i like tea {number} {s}"), ("Bob", "hello now")] for s in range(sessions + number % 2)]
        network = {
            "schema": "writer-rl/1",
            "scenario": "test",
            "speakers": ["Ann", "Bob"],
            "sessions": [_session(name, index, said) for index, said in enumerate(turns)],
            "qa_pairs": [_question(name, i) for i in range(2)],
            "meta": {"network_id": name},
        }
        actions = [[json.loads(ADD)["actions"][0]], *([{"action": "NOOP"}] for _ in turns[1:])]
        trajectory = {
            "schema": "speakermem-v4-trajectories/1",
            "network_id": name,
            "transitions": [{"session_id": f"{name}_s{i}", "messages": [], "actions": a} for i, a in enumerate(actions)],
        }
        (folder / "networks" / f"{name}.json").write_text(json.dumps(network))
        (folder / "trajectories" / f"{name}.json").write_text(json.dumps(trajectory))


def save_config(folder: Path, changes: Mapping[str, Any] | None = None) -> Path:
    """A whole GRPO set-up under `folder`: writer/, chats/, prompt.txt, config.yaml (output in run/)."""
    save_writer(folder / "writer")
    save_chats(folder / "chats")
    (folder / "prompt.txt").write_text(PROMPT)
    config: dict[str, Any] = {
        "model": {"path": str(folder / "writer")},
        "data": {
            "train": str(folder / "chats" / "networks"),
            "trajectories": str(folder / "chats" / "trajectories"),
            "heldout": [],
            "validation": [],
            "prompt": str(folder / "prompt.txt"),
        },
        "rollout": {"group_size": 4, "networks_per_round": 1, "max_new_tokens": 6, "temperature": 1.0, "top_p": 1.0},
        "trainer": {"steps": 2, "lr": 0.01, "kl_limit": None, "micro_batch_tokens": 128, "threads": 1},
        "tracking": {"wandb": "off", "plot_every": 0},
        "output_dir": str(folder / "run"),
    }
    for key, value in (changes or {}).items():
        section, _, name = key.partition(".")
        if name:
            config.setdefault(section, {})[name] = value
        else:
            config[section] = value
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def _session(name: str, index: int, said: list[tuple[str, str]]) -> dict[str, Any]:
    turns = [
        {
            "turn": f"{name}_s{index}_t{i}",
            "speaker": who,
            "speaker_id": who,
            "content": text,
            "ts": f"2026-01-0{index + 1}",
            "reply_to": "",
        }
        for i, (who, text) in enumerate(said)
    ]
    return {
        "session_id": f"{name}_s{index}",
        "session_index": index + 1,
        "topic": "",
        "ts": f"2026-01-0{index + 1}",
        "turns": turns,
    }


def _question(name: str, number: int) -> dict[str, Any]:
    return {
        "id": f"{name}_q{number}",
        "category": "Q1",
        "difficulty": "easy",
        "question": "What does Ann like?",
        "answer": "tea",
        "answer_format": "short",
        "options": [],
        "correct_option": "",
        "evidence_anchors": [],
        "temporal_anchors": [],
    }
