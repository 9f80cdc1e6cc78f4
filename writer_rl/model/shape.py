"""The shape of a dense decoder-only transformer, and from it exact parameter counts, without torch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

SUPPORTED = ("qwen2", "qwen3", "llama", "mistral")


class ShapeError(ValueError):
    """A model configuration whose parameters this module can't count."""


@dataclass(frozen=True)
class ModelShape:
    """What decides every parameter's shape.

    Example (Qwen2.5-3B: 3,085,938,688 parameters, tied embeddings):
        ModelShape("qwen2", vocab=151936, hidden=2048, layers=36, heads=16, kv_heads=2, head_dim=128,
                   intermediate=11008, tied=True, qkv_bias=True)
    """

    family: str
    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    tied: bool
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False

    @property
    def embedding(self) -> int:
        """Parameters of the token embedding."""
        return self.vocab * self.hidden

    @property
    def layer(self) -> int:
        """Parameters of one transformer layer."""
        query, key_value = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = self.hidden * (query + 2 * key_value) + query * self.hidden
        attention += self.qkv_bias * (query + 2 * key_value) + self.out_bias * self.hidden
        attention += self.qk_norm * 2 * self.head_dim
        mlp = 3 * self.hidden * self.intermediate + self.mlp_bias * (2 * self.intermediate + self.hidden)
        return attention + mlp + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters; a head that shares the embedding's matrix counts once."""
        head = 0 if self.tied else self.embedding
        return self.embedding + self.layers * self.layer + self.hidden + head

    def adapter(self, rank: int) -> int:
        """Parameters of a LoRA of this rank on every matrix of every layer: rank (rows + columns) each."""
        query, key_value = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = 2 * (self.hidden + query) + 2 * (self.hidden + key_value)
        return self.layers * rank * (attention + 3 * (self.hidden + self.intermediate))

    @property
    def kv_elements(self) -> int:
        """Elements of the key-value cache per token."""
        return 2 * self.layers * self.kv_heads * self.head_dim

    @classmethod
    def from_config(cls, config: dict, where: str = "config.json") -> ModelShape:
        """From a Hugging Face `config.json`; ShapeError for a family or a layout that is not counted here."""
        family = config.get("model_type", "")
        if family not in SUPPORTED:
            raise ShapeError(f"{where}: model_type {family!r} is not counted here; supported: {', '.join(SUPPORTED)}")
        try:
            hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
            # Qwen2 has biases on q, k and v, whatever `attention_bias` says; the others follow the key.
            bias = bool(config.get("attention_bias", False))
            return cls(
                family=family,
                vocab=int(config["vocab_size"]),
                hidden=hidden,
                layers=int(config["num_hidden_layers"]),
                heads=heads,
                kv_heads=int(config.get("num_key_value_heads") or heads),
                head_dim=int(config.get("head_dim") or (128 if family == "qwen3" else hidden // heads)),
                intermediate=int(config["intermediate_size"]),
                tied=bool(config.get("tie_word_embeddings", False)),
                qkv_bias=family == "qwen2" or (bias and family != "mistral"),
                out_bias=bias and family in ("llama", "qwen3"),
                mlp_bias=bool(config.get("mlp_bias", False)) and family == "llama",
                qk_norm=family == "qwen3",
            )
        except KeyError as error:
            raise ShapeError(f"{where}: has no {error.args[0]}") from None

    @classmethod
    def load(cls, path: str | Path) -> ModelShape:
        """From a model folder, a `config.json`, or the name of a shape in `KNOWN`."""
        known = KNOWN.get(str(path).lower().removeprefix("qwen/").removesuffix("-instruct"))
        if known is not None and not Path(path).exists():
            return known
        file = Path(path) / "config.json" if Path(path).is_dir() else Path(path)
        if not file.is_file():
            raise ShapeError(f"{path}: is no model folder, no config.json and none of {', '.join(KNOWN)}")
        try:
            config = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ShapeError(f"{file}: is not JSON ({error})") from None
        return cls.from_config(config, str(file))


def _qwen2(hidden: int, layers: int, heads: int, kv_heads: int, intermediate: int, vocab: int, tied: bool) -> ModelShape:
    return ModelShape("qwen2", vocab, hidden, layers, heads, kv_heads, hidden // heads, intermediate, tied=tied, qkv_bias=True)


KNOWN = {
    "qwen2.5-0.5b": _qwen2(896, 24, 14, 2, 4864, 151936, True),
    "qwen2.5-1.5b": _qwen2(1536, 28, 12, 2, 8960, 151936, True),
    "qwen2.5-3b": _qwen2(2048, 36, 16, 2, 11008, 151936, True),
    "qwen2.5-7b": _qwen2(3584, 28, 28, 4, 18944, 152064, False),
}
