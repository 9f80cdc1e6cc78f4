"""Exports of what two ranks really trained, under ZeRO 1, 2 and 3: DeepSpeed's own shards joined, and vLLM computing the same."""

import json

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from launch.cli import exit_code
from launch.export import main
from tests.writer_rl.processes import train
from tests.writer_rl.tiny_run import make_tokenizer, save_config, save_writer
from writer_rl.grpo.samples import Sample
from writer_rl.model.batching import collate
from writer_rl.model.policy import Policy

SHAPE = dict(num_attention_heads=1, num_key_value_heads=1)
"""vLLM's CPU attention knows head sizes from 32 up."""
RUNS = [(1, True), (2, True), (3, True), (3, False)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """`trained(stage, tied)`: the newest checkpoint of a run of two ranks, made once."""
    made = {}

    def checkpoint(stage, tied):
        if (stage, tied) not in made:
            folder = tmp_path_factory.mktemp(f"zero{stage}")
            config = save_config(folder, {"trainer.steps": 1, "trainer.zero_stage": stage, "rollout.networks_per_round": 2})
            save_writer(folder / "writer", tied=tied, **SHAPE)
            assert train(config, ranks=2) == [0, 0]
            made[stage, tied] = folder / "run" / "checkpoints" / "000001"
        return made[stage, tied]

    return checkpoint


def joined_shards(checkpoint):
    """The parameters as DeepSpeed's own tool joins them from what both ranks saved."""
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

    joined = get_fp32_state_dict_from_zero_checkpoint(str(checkpoint), tag="engine")
    return {name.removeprefix("model."): tensor for name, tensor in joined.items()}


def export(checkpoint, output, *options):
    assert exit_code(main, ["--checkpoint", str(checkpoint), "--output", str(output), *options]) == 0
    return output


@pytest.mark.ranks
@pytest.mark.parametrize(("stage", "tied"), RUNS)
def test_an_export_holds_the_parameters_of_all_ranks_shards(trained, tmp_path, stage, tied):
    checkpoint = trained(stage, tied)
    assert json.loads((checkpoint / "state.json").read_text())["world_size"] == 2
    out = export(checkpoint, tmp_path / "out")
    weights, shards = load_file(out / "model.safetensors"), joined_shards(checkpoint)
    assert ("lm_head.weight" in weights) is not tied
    assert weights.keys() == shards.keys() - ({"lm_head.weight"} if tied else set())
    assert all(torch.equal(weights[name], shards[name]) for name in weights)
    start = load_file(checkpoint.parents[2] / "writer" / "model.safetensors")
    assert any(not torch.equal(weights[name], start[name]) for name in weights)
    model = AutoModelForCausalLM.from_pretrained(out)
    assert (model.lm_head.weight.data_ptr() == model.get_input_embeddings().weight.data_ptr()) is tied
    halves = load_file(export(checkpoint, tmp_path / "half", "--dtype", "bfloat16") / "model.safetensors")
    assert all(torch.equal(halves[name], weights[name].to(torch.bfloat16)) for name in weights)
    card = (out / "README.md").read_text()
    assert all(fact in card for fact in ("position-aligned GRPO", "| rounds | 1 of 1 |", "| learning rate | 0.01 |"))


@pytest.mark.ranks
@pytest.mark.vllm
@pytest.mark.parametrize(("stage", "tied"), [(2, True), (3, False)])
def test_vllm_gives_the_trainers_logprobs(trained, tmp_path, stage, tied):
    from rollout.engine import GenerationRequest, SamplingParams
    from rollout.vllm.engine import VLLMEngine
    from tests.writer_rl.tiny_run import make_model

    checkpoint = trained(stage, tied)
    trainer = Policy(make_model(tied=tied, **SHAPE))
    trainer.model.load_state_dict(joined_shards(checkpoint), strict=False)
    engine = VLLMEngine(str(export(checkpoint, tmp_path / "out")), make_tokenizer())
    try:
        prompts = [tuple(3 + (7 * i + j) % 19 for j in range(5 + 13 * i)) for i in range(4)]
        sampling = SamplingParams(temperature=1.0, top_p=1.0, max_new_tokens=12)
        written = engine.generate([GenerationRequest(prompt, seed, sampling) for seed, prompt in enumerate(prompts)])
    finally:
        engine.close()
    samples = [Sample("n", i, 0, p, w.token_ids, w.logprobs, 1.0) for i, (p, w) in enumerate(zip(prompts, written, strict=True))]
    with torch.no_grad():
        expected, _ = trainer(collate(samples))
    found = torch.tensor([value for made in written for value in made.logprobs])
    assert len(found) > len(written)
    assert torch.allclose(found, expected, rtol=0, atol=1e-4)
