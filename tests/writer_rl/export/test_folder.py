"""What export promises: a plain Hugging Face folder that computes what the checkpoint computes."""

import json

import pytest
import torch
import yaml
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

from launch.cli import exit_code
from launch.export import main
from tests.writer_rl.tiny_run import PROMPT, make_model, make_tokenizer
from writer_rl.train.checkpoint import FORMAT

IDS = torch.tensor([[3, 9, 12, 7, 1, 20]])


def save_run(folder, tied=True, rounds=(1, 2)):
    """A run directory with checkpoints of different weights, as training leaves it."""
    (folder / "prompt.txt").write_text(PROMPT)
    settings = {
        "model": {"path": "somewhere/base", "init": "pretrained"},
        "data": {"train": ["corpus:train"], "prompt": str(folder / "prompt.txt")},
        "rollout": {"group_size": 4},
        "trainer": {"lr": 0.001, "optimizer": "adamw", "kl_coef": 0.1},
        "seed": 3,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    for number in rounds:
        checkpoint = folder / "checkpoints" / f"{number:06d}"
        model = make_model(seed=number, tied=tied)
        model.save_pretrained(checkpoint / "model")
        make_tokenizer().save_pretrained(checkpoint / "model")
        (checkpoint / "state.json").write_text(json.dumps({"format": FORMAT}))
    (folder / "checkpoints" / "latest").write_text(f"{rounds[-1]:06d}\n")
    return folder


@pytest.fixture
def run(tmp_path):
    return save_run(tmp_path)


def export(*arguments):
    return exit_code(main, [str(a) for a in arguments])


def logits(folder, **options):
    return AutoModelForCausalLM.from_pretrained(folder, **options).eval()(input_ids=IDS).logits


@pytest.mark.parametrize("tied", [True, False])
def test_logits_are_the_checkpoints(tmp_path, tied):
    run = save_run(tmp_path, tied)
    assert export("--checkpoint", run / "checkpoints" / "000001", "--output", run / "out") == 0
    expected = make_model(seed=1, tied=tied).eval()(input_ids=IDS).logits
    assert torch.equal(logits(run / "out"), expected)
    with safe_open(run / "out" / "model.safetensors", "pt") as weights:
        assert ("lm_head.weight" in list(weights.keys())) is not tied


def test_a_run_directory_means_its_newest_checkpoint_and_final_means_itself(run):
    assert export("--checkpoint", run, "--output", run / "newest") == 0
    assert torch.equal(logits(run / "newest"), make_model(seed=2).eval()(input_ids=IDS).logits)
    make_model(seed=7).save_pretrained(run / "final")
    make_tokenizer().save_pretrained(run / "final")
    assert export("--checkpoint", run / "final", "--output", run / "last") == 0
    assert torch.equal(logits(run / "last"), make_model(seed=7).eval()(input_ids=IDS).logits)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_weights_have_the_dtype_asked_for(run, dtype):
    assert export("--checkpoint", run, "--output", run / "out", "--dtype", dtype) == 0
    model = AutoModelForCausalLM.from_pretrained(run / "out", dtype="auto")
    assert model.dtype == getattr(torch, dtype)
    original = make_model(seed=2).state_dict()
    for name, p in model.state_dict().items():
        assert torch.equal(p, original[name].to(p.dtype)), name


def test_tokenizer_template_stop_ids_prompt_and_card_come_along(run):
    assert export("--checkpoint", run, "--output", run / "my-writer") == 0
    out = run / "my-writer"
    tokenizer, own = (AutoTokenizer.from_pretrained(f) for f in (out, run / "checkpoints" / "000002" / "model"))
    chat = [{"role": "user", "content": "hello now"}]
    rendered = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert rendered == own.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert tokenizer(rendered)["input_ids"] == own(rendered)["input_ids"]
    generation = json.loads((out / "generation_config.json").read_text())
    assert generation["eos_token_id"] == own.eos_token_id and generation["do_sample"] is False
    assert (out / "prompt.txt").read_text() == PROMPT
    card = (out / "README.md").read_text()
    for fact in ("# my-writer", "position-aligned GRPO", "somewhere/base", "corpus:train", "| seed | 3 |", "None recorded"):
        assert fact in card, fact


def test_the_card_shows_the_runs_evaluation(run):
    row = {"writer": "R1", "accuracy_mean": 68.2, "token_f1_mean": 41.5, "mean_q": 0.7, "mean_n": 0.69}
    (run / "evaluation.json").write_text(json.dumps({"total": 305, "rows": [row]}))
    assert export("--checkpoint", run, "--output", run / "out") == 0
    card = (run / "out" / "README.md").read_text()
    assert "305 questions" in card and "| R1 | 68.20 | 41.50 | 0.70 | 0.69 |" in card


def test_an_output_that_holds_something_is_left_alone(run, capsys):
    out = run / "out"
    out.mkdir()
    assert export("--checkpoint", run, "--output", out) == 0  # empty: fine
    before = sorted(p.name for p in out.iterdir())
    assert export("--checkpoint", run, "--output", out) == 2
    assert "is not empty" in capsys.readouterr().err
    assert sorted(p.name for p in out.iterdir()) == before


@pytest.mark.parametrize("damage", ["nothing", "no model", "torn weights", "no prompt", "bad evaluation", "newer format"])
def test_what_can_not_be_exported_is_one_line_and_leaves_nothing(run, capsys, damage):
    checkpoint, out = run / "checkpoints" / "000002", run / "out"
    if damage == "nothing":
        checkpoint = run / "elsewhere"
    elif damage == "no model":
        (checkpoint / "model" / "model.safetensors").unlink()
    elif damage == "torn weights":
        weights = checkpoint / "model" / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:1000])
    elif damage == "no prompt":
        (run / "prompt.txt").unlink()
    elif damage == "bad evaluation":
        (run / "evaluation.json").write_text("{")
    elif damage == "newer format":
        (checkpoint / "state.json").write_text(json.dumps({"format": FORMAT + 1}))
    assert export("--checkpoint", checkpoint, "--output", out) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert error and "Traceback" not in "".join(error)
    assert not out.exists()
