import json

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from writer_rl.model.shape import KNOWN, ModelShape, ShapeError

SMALL = {
    "vocab_size": 131,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
}


def counted_by_torch(config: dict) -> int:
    config = dict(config)
    built = AutoConfig.for_model(config.pop("model_type"), **config)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(built)
    model.tie_weights()
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("family", ["qwen2", "qwen3", "llama", "mistral"])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_the_count_equals_a_real_models(family, tied, biased):
    config = {**SMALL, "model_type": family, "tie_word_embeddings": tied, "attention_bias": biased, "mlp_bias": biased}
    if family == "qwen3":
        config["head_dim"] = 16
    assert ModelShape.from_config(config).parameters == counted_by_torch(config)


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_known_shapes_equal_real_models(name):
    shape = KNOWN[name]
    config = {
        "model_type": "qwen2",
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "tie_word_embeddings": shape.tied,
    }
    assert shape.parameters == counted_by_torch(config)


@pytest.mark.parametrize("name", ["qwen2.5-0.5b", "qwen2.5-3b"])
def test_an_adapter_is_as_large_as_pefts(name):
    from writer_rl.config import LoRASection, ModelSection
    from writer_rl.model.lora import add_adapter
    from writer_rl.model.policy import Policy

    shape = KNOWN[name]
    config = AutoConfig.for_model(
        "qwen2",
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
    )
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
        add_adapter(Policy(model), ModelSection(lora=LoRASection(rank=8)))
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == shape.adapter(8)


def test_the_papers_writer_has_its_published_size():
    assert ModelShape.load("Qwen/Qwen2.5-3B-Instruct").parameters == 3_085_938_688


def test_what_cannot_be_counted_is_named(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mixtral"}))
    with pytest.raises(ShapeError, match="mixtral.*supported: qwen2"):
        ModelShape.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2", "hidden_size": 8}))
    with pytest.raises(ShapeError, match="has no num_attention_heads"):
        ModelShape.load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ShapeError, match="is not JSON"):
        ModelShape.load(tmp_path)
    with pytest.raises(ShapeError, match="no model folder"):
        ModelShape.load(tmp_path / "absent")
