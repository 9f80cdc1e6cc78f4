"""Loading the Writer: what it computes, and what is refused in one line."""

import importlib.util
import json
import shutil

import pytest
import torch

from tests.writer_rl.tiny_run import make_model, save_writer
from writer_rl.config import ModelSection
from writer_rl.grpo.samples import Sample
from writer_rl.model.batching import collate
from writer_rl.model.policy import Policy, PolicyError, load_policy, load_reference, load_tokenizer


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    return save_writer(tmp_path_factory.mktemp("writer"))


def sample(prompt, completion):
    return Sample("n", 0, 0, tuple(prompt), tuple(completion), (0.0,) * len(completion), 1.0)


@pytest.mark.parametrize("tied", [True, False])
def test_log_probabilities_are_those_of_the_models_own_logits(tied):
    model = make_model(tied=tied)
    samples = [sample([3, 4, 5], [6, 7]), sample([8], [9, 10, 11, 12]), sample([1] * 9, [2])]
    found, entropy = Policy(model, logprob_chunk=2)(collate(samples), entropy=True)
    expected, entropies = [], []
    for each in samples:
        ids = torch.tensor([[*each.prompt_ids, *each.completion_ids]])
        rows = torch.log_softmax(model(input_ids=ids).logits[0], -1)[len(each.prompt_ids) - 1 : -1]
        expected += rows.gather(-1, torch.tensor(each.completion_ids)[:, None])[:, 0].tolist()
        entropies += (-(rows.exp() * rows).sum(-1)).tolist()
    assert found.tolist() == pytest.approx(expected, abs=1e-5)
    assert entropy.tolist() == pytest.approx(entropies, abs=1e-5)


def test_padding_changes_nothing(writer):
    policy = load_policy(ModelSection(path=str(writer)))
    short = sample([3, 4], [5, 6])
    alone = policy(collate([short]))[0]
    padded = policy(collate([sample([7] * 30, [8] * 9), short]))[0]
    assert torch.allclose(padded[-2:], alone, atol=1e-6)


def test_dropout_is_off_in_training_mode():
    model = make_model()
    model.config.attention_dropout = 0.5
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.5
    policy = Policy(model).train()
    batch = collate([sample([3, 4, 5], [6, 7])])
    assert torch.equal(policy(batch)[0], policy(batch)[0])


def test_gradient_checkpointing_gives_the_same_gradient(writer):
    grads = []
    for switch in (False, True):
        policy = load_policy(ModelSection(path=str(writer), gradient_checkpointing=switch))
        policy(collate([sample([3, 4, 5], [6, 7])]))[0].sum().backward()
        grads.append([p.grad for p in policy.parameters()])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*grads, strict=True))


def test_every_attention_gives_the_same_gradient(writer):
    grads, found = [], []
    for attention in ("sdpa", "eager"):
        policy = load_policy(ModelSection(path=str(writer), attn_implementation=attention))
        assert policy.model.config._attn_implementation == attention
        logprobs = policy(collate([sample([3, 4, 5], [6, 7]), sample([8] * 9, [9, 10, 11])]))[0]
        logprobs.sum().backward()
        found.append(logprobs)
        grads.append([p.grad for p in policy.parameters()])
    assert torch.allclose(*found, atol=1e-5)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*grads, strict=True))


@pytest.mark.skipif(importlib.util.find_spec("flash_attn") is not None, reason="flash-attn is installed here")
def test_an_attention_that_is_not_installed_is_one_line(writer):
    with pytest.raises(PolicyError, match="could not be loaded") as caught:
        load_policy(ModelSection(path=str(writer), attn_implementation="flash_attention_2"))
    assert "\n" not in str(caught.value)


def test_bfloat16_is_near_float32(writer):
    batch = collate([sample([3, 4, 5], [6, 7]), sample([8] * 9, [9, 10, 11])])
    exact, rounded = (load_policy(ModelSection(path=str(writer), dtype=dtype)) for dtype in ("float32", "bfloat16"))
    assert {p.dtype for p in rounded.parameters()} == {torch.bfloat16}
    found = rounded(batch)[0]
    assert found.dtype == torch.float32, "log-probabilities are summed up in float32"
    assert torch.allclose(found, exact(batch)[0], atol=0.1)
    found.sum().backward()
    exact(batch)[0].sum().backward()
    cosine = torch.nn.functional.cosine_similarity
    flat = [torch.cat([p.grad.float().flatten() for p in policy.parameters()]) for policy in (rounded, exact)]
    assert cosine(*flat, dim=0) > 0.999


def test_random_weights_are_seeded_and_leave_the_generator_alone(writer):
    settings = ModelSection(path=str(writer), init="random")
    before = torch.get_rng_state()
    one, same, other = (load_policy(settings, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one.head.weight, same.head.weight)
    assert not torch.equal(one.head.weight, other.head.weight)
    assert torch.equal(load_reference(settings, 1).head.weight, one.head.weight)


def test_the_reference_is_frozen_and_starts_equal(writer):
    settings = ModelSection(path=str(writer))
    policy, reference = load_policy(settings), load_reference(settings)
    assert not any(p.requires_grad for p in reference.parameters())
    batch = collate([sample([3, 4, 5], [6, 7])])
    assert torch.equal(policy(batch)[0], reference(batch)[0])


@pytest.mark.parametrize("path", ["./nowhere", "runs/a/b/c", "/nowhere"])
def test_a_path_that_is_no_directory(path):
    with pytest.raises(PolicyError, match="no such directory"):
        load_policy(ModelSection(path=path))


def test_a_hub_id_that_can_not_be_had():
    with pytest.raises(PolicyError, match="nobody/no-such-model") as caught:
        load_policy(ModelSection(path="nobody/no-such-model"))
    assert "\n" not in str(caught.value)


def test_weights_of_another_model(writer, tmp_path):
    folder = tmp_path / "mixed"
    shutil.copytree(writer, folder)
    config = json.loads((folder / "config.json").read_text())
    config["num_hidden_layers"] = 3
    config.pop("layer_types", None)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(PolicyError, match="another model's"):
        load_policy(ModelSection(path=str(folder)))


@pytest.mark.parametrize("damage", ["truncated", "empty", "json"])
def test_damaged_weights(writer, tmp_path, damage):
    folder = tmp_path / "damaged"
    shutil.copytree(writer, folder)
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes({"truncated": whole[: len(whole) // 2], "empty": b"", "json": b"{}"}[damage])
    with pytest.raises(PolicyError) as caught:
        load_policy(ModelSection(path=str(folder)))
    assert "\n" not in str(caught.value)


def test_a_tokenizer_without_a_chat_template(writer, tmp_path):
    folder = tmp_path / "plain"
    shutil.copytree(writer, folder)
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(PolicyError, match="chat template"):
        load_tokenizer(ModelSection(path=str(folder)))


def test_a_tokenizer_of_a_larger_model(writer):
    with pytest.raises(PolicyError, match="not this model's tokenizer"):
        load_tokenizer(ModelSection(path=str(writer)), vocabulary=5)


def test_a_directory_without_a_tokenizer(tmp_path):
    make_model().save_pretrained(tmp_path)
    with pytest.raises(PolicyError, match="tokenizer"):
        load_tokenizer(ModelSection(path=str(tmp_path)))


def test_a_damaged_tokenizer(writer, tmp_path):
    shutil.copytree(writer, tmp_path, dirs_exist_ok=True)
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0", "model"')
    with pytest.raises(PolicyError, match="tokenizer .*could not be loaded") as caught:
        load_tokenizer(ModelSection(path=str(tmp_path)))
    assert "\n" not in str(caught.value)


def test_a_model_that_changes_its_logits_after_the_head_is_refused(tmp_path):
    from transformers import CohereConfig, CohereForCausalLM

    shape = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
    }
    config = CohereConfig(
        vocab_size=20, logit_scale=7.0, pad_token_id=0, bos_token_id=1, eos_token_id=2, initializer_range=0.5, **shape
    )
    CohereForCausalLM(config).save_pretrained(tmp_path)
    with pytest.raises(PolicyError, match="logits"):
        load_policy(ModelSection(path=str(tmp_path)))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_damaged(tmp_path, value):
    model = make_model()
    model.get_parameter("model.layers.0.mlp.up_proj.weight").data[0, 0] = value
    model.save_pretrained(tmp_path)
    with pytest.raises(PolicyError, match="not finite"):
        load_policy(ModelSection(path=str(tmp_path)))
