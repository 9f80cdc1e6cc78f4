"""The committed checkpoints, base and SFT, are what they say: small, of this shape, and the latter as skilled as recorded."""

import json

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from memory_env import PromptTemplate
from memory_env.corpus import teacher, validation_networks
from rollout.hf.engine import HFEngine
from rollout.sampler import write_memories
from rollout.writer_prompt import WriterPrompt
from writer_rl.config import resolve
from writer_rl.evaluation.memory_metrics import memory_metrics
from writer_rl.model.tiny import tiny_config, tiny_tokenizer, write_blank

BASE, COMMITTED = resolve("configs/tiny_base"), resolve("configs/tiny_writer")
FOLDERS = pytest.mark.parametrize("folder", [BASE, COMMITTED], ids=lambda folder: folder.name)
MEGABYTES = 4
NEW_TOKENS = 384


@FOLDERS
def test_the_folder_is_small(folder):
    assert sum(file.stat().st_size for file in folder.iterdir()) <= MEGABYTES * 2**20


@FOLDERS
def test_a_blank_folder_has_the_committed_shape(folder, tmp_path):
    write_blank(tmp_path)
    ours, theirs = (json.loads((place / "config.json").read_text()) for place in (tmp_path, folder))
    free = ("dtype", "transformers_version", "_name_or_path")
    assert {k: v for k, v in ours.items() if k not in free} == {k: v for k, v in theirs.items() if k not in free}


@FOLDERS
def test_the_weights_are_finite_half_precision_and_all_there(folder):
    weights = load_file(folder / "model.safetensors")
    assert all(p.dtype == torch.float16 and p.isfinite().all() for p in weights.values())
    blank = AutoModelForCausalLM.from_config(tiny_config(tiny_tokenizer()))
    expected = {name: p.shape for name, p in blank.named_parameters()}
    assert {name: p.shape for name, p in weights.items()} == expected  # tied: no lm_head of its own


@pytest.fixture(scope="module")
def measured():
    model = AutoModelForCausalLM.from_pretrained(COMMITTED, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(COMMITTED)
    template = PromptTemplate.load(resolve("configs/prompts/tiny_writer.jinja"))
    prompt = WriterPrompt(tokenizer, template, model.config.max_position_embeddings - NEW_TOKENS)
    networks = validation_networks(5)
    written = write_memories(networks, HFEngine(model, tokenizer), prompt, NEW_TOKENS)
    references = {network.network_id: teacher(network) for network in networks}
    questions = {network.network_id: network.questions for network in networks}
    return memory_metrics(written.values(), references, questions)


@pytest.mark.parametrize(
    ("figure", "least"),
    [("json", 0.97), ("schema", 0.95), ("attribution_accuracy", 0.7), ("phi", 0.35), ("question_score", 0.25)],
)
def test_it_is_skilled(measured, figure, least):
    """Floors well under what was measured when it was committed."""
    assert measured[figure] >= least
