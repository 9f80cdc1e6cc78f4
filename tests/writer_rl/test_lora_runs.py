"""Whole runs of SFT and GRPO with an adapter: sampled as adapted, resumed as begun, exported merged and apart."""

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from launch.cli import exit_code
from launch.export import main as export_main
from tests.writer_rl.grpo.test_run import assert_same_run, records
from tests.writer_rl.processes import train
from tests.writer_rl.tiny_run import save_config, save_writer

STEPS = 3
LORA = {"rank": 4, "alpha": 8.0, "target_modules": ["q_proj", "v_proj", "up_proj", "down_proj"]}
IDS = torch.tensor([[3, 9, 12, 7, 1, 20]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("lora")
    changes = {"model.lora": LORA, "trainer.steps": STEPS, "trainer.keep_checkpoints": 9, "trainer.lr": 0.03}
    save_config(path, changes)
    return path


@pytest.fixture(scope="module")
def whole(folder):
    """An uninterrupted GRPO run."""
    assert train(folder / "config.yaml", "--output_dir", str(folder / "whole"), output=folder / "whole.log") == [0]
    return folder / "whole"


def weights(run, number=STEPS):
    return load_file(run / "checkpoints" / f"{number:06d}" / "model" / "model.safetensors")


def logits(model):
    with torch.no_grad():
        return model.eval()(input_ids=IDS).logits


def updates(run):
    """The rounds that had samples to train on."""
    return [record for record in records(run) if record["policy/samples"]]


def assert_sampled_as_adapted(run, bound=1e-4):
    """The policy begins as its base and leaves it, and the sampler's probabilities stay the trainer's."""
    first, *later = updates(run)
    assert first["policy/kl/epoch_1"] == 0.0
    assert later and all(record["policy/kl/epoch_1"] > 1e-4 for record in later)
    assert all(record["rollout/mismatch_max"] < bound for record in updates(run))


def test_the_adapter_is_sampled_and_its_base_is_the_reference(folder, whole):
    assert_sampled_as_adapted(whole)
    assert "of an adapter are trained" in (folder / "whole.0").read_text().splitlines()[0]


def test_only_the_chosen_matrices_move(folder, whole):
    base, trained = load_file(folder / "writer" / "model.safetensors"), weights(whole)
    assert base.keys() == trained.keys()
    moved = {name for name in base if not torch.equal(base[name], trained[name])}
    assert {name.split(".")[-2] for name in moved} == set(LORA["target_modules"]) and len(moved) == 2 * 4


@pytest.mark.parametrize("event", ["", "SIGKILL epoch 3"])
def test_a_run_that_is_interrupted_ends_the_same(folder, whole, event):
    run = folder / f"again-{event.replace(' ', '-')}"
    arguments = [folder / "config.yaml", "--output_dir", str(run)]
    if event:
        assert train(*arguments, event=event) == [-9]
    else:
        assert train(*arguments, "--trainer.steps", "1") == [0]
    assert train(*arguments) == [0]
    assert_same_run(run, whole, STEPS)
    name = f"checkpoints/{STEPS:06d}/model/adapter/adapter_model.safetensors"
    ours, theirs = load_file(run / name), load_file(whole / name)
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[key], theirs[key]) for key in theirs)


def test_another_adapter_can_not_go_on(folder, whole):
    arguments = [folder / "config.yaml", "--output_dir", str(whole), "--trainer.steps", "4"]
    assert train(*arguments, "--model.lora.rank", "2", output=folder / "rank") == [2]
    assert "model.lora.rank 4, not 2" in (folder / "rank.0").read_text()
    path = str(whole / "checkpoints" / "000001")
    other = [folder / "config.yaml", "--output_dir", str(folder / "other"), "--trainer.resume", path, "--model.lora.rank", "0"]
    assert train(*other, output=folder / "none") == [2]
    assert "another model" in (folder / "none.0").read_text()


def test_a_reference_of_its_own_is_still_possible(folder):
    save_writer(folder / "elsewhere", seed=3)
    run = folder / "other-reference"
    arguments = [folder / "config.yaml", "--output_dir", str(run), "--trainer.steps", "2"]
    assert train(*arguments, "--model.reference", str(folder / "elsewhere")) == [0]
    assert updates(run)[0]["policy/kl/epoch_1"] > 0.01


def test_under_zero_3_the_engine_has_a_copy_of_its_own(folder):
    run = folder / "sharded"
    assert train(folder / "config.yaml", "--output_dir", str(run), "--trainer.zero_stage", "3") == [0]
    assert_sampled_as_adapted(run)


@pytest.mark.ranks
def test_two_ranks_make_the_run_of_one(folder, whole):
    run = folder / "two"
    assert train(folder / "config.yaml", "--output_dir", str(run), "--trainer.zero_stage", "2", ranks=2) == [0, 0]
    assert_sampled_as_adapted(run)
    first, other = updates(run)[0], updates(whole)[0]
    for key in ("reward/return/mean", "policy/kl/epoch_2", "policy/loss", "policy/grad_norm"):
        assert first[key] == pytest.approx(other[key], rel=1e-2, abs=1e-5), key


@pytest.mark.vllm
def test_vllm_gets_merged_weights(folder):
    """Each sync is proven by the probe; later rounds' samples come from merged weights."""
    save_writer(folder / "wide", hidden_size=64, num_attention_heads=2, num_key_value_heads=1)
    arguments = ["--model.path", str(folder / "wide"), "--rollout.engine", "vllm", "--output_dir", str(folder / "vllm")]
    assert train(folder / "config.yaml", *arguments, output=folder / "vllm.log") == [0]
    assert_sampled_as_adapted(folder / "vllm")


def test_all_that_saves_memory_at_once(folder):
    """bfloat16, recomputed activations, an adapter, ZeRO-2 and an offloaded 8-bit optimizer in one run."""
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed (the extra eightbit)")
    switches = {
        "model.dtype": "bfloat16",
        "model.gradient_checkpointing": "true",
        "trainer.zero_stage": "2",
        "trainer.offload": "cpu",
        "trainer.optimizer": "adamw8bit",
        "output_dir": str(folder / "small"),
    }
    arguments = [part for key, value in switches.items() for part in (f"--{key}", value)]
    assert train(folder / "config.yaml", *arguments, output=folder / "small.log") == [0]
    assert_sampled_as_adapted(folder / "small", bound=0.3)
    assert all(record["policy/steps_taken"] == 2 for record in updates(folder / "small"))
    assert {tensor.dtype for tensor in weights(folder / "small").values()} == {torch.bfloat16}


def test_dropout_is_for_sft_only(folder):
    arguments = [folder / "config.yaml", "--output_dir", str(folder / "dropped"), "--model.lora.dropout", "0.1"]
    assert train(*arguments, output=folder / "dropped.log") == [2]
    assert "model.lora.dropout" in (folder / "dropped.0").read_text()


@pytest.fixture(scope="module")
def tuned(folder):
    """An SFT run with an adapter and dropout."""
    path = folder / "sft"
    path.mkdir()
    save_config(path, {"model.lora": LORA | {"dropout": 0.1}, "rollout.max_new_tokens": 16})
    config = yaml.safe_load((path / "config.yaml").read_text())
    config["trainer"] = {"epochs": 3, "accumulation": 2, "lr": 0.01, "threads": 1}
    (path / "config.yaml").write_text(yaml.safe_dump(config))
    assert train(path / "config.yaml", script="sft", output=path / "log") == [0], (path / "log.0").read_text()
    return path / "run"


def test_sft_learns_through_an_adapter_and_goes_on_with_the_same_dropout(tuned):
    lines = records(tuned)
    assert lines[-1]["sft/loss"] < lines[0]["sft/loss"]
    config = tuned.parent / "config.yaml"
    again = tuned.parent / "again"
    arguments = ["--output_dir", str(again), "--trainer.checkpoint_every", "2"]
    assert train(config, *arguments, script="sft", event="SIGKILL epoch 4") == [-9]
    assert train(config, *arguments, script="sft") == [0]
    ours, theirs = (load_file(run / "final" / "model.safetensors") for run in (again, tuned))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_an_export_is_merged_or_the_adapter_apart(folder, tuned, tmp_path, capsys):
    from peft import PeftModel

    final = logits(AutoModelForCausalLM.from_pretrained(tuned / "final"))
    assert exit_code(export_main, ["--checkpoint", str(tuned / "final"), "--output", str(tmp_path / "merged")]) == 0
    assert torch.equal(logits(AutoModelForCausalLM.from_pretrained(tmp_path / "merged")), final)
    assert not (tmp_path / "merged" / "adapter").exists()
    apart = tmp_path / "apart"
    assert exit_code(export_main, ["--checkpoint", str(tuned), "--adapter", "--output", str(apart)]) == 0
    base = AutoModelForCausalLM.from_pretrained(tuned.parent / "writer")
    assert torch.allclose(logits(PeftModel.from_pretrained(base, apart)), final, atol=1e-5)
    assert not list(apart.glob("model*.safetensors")) and (apart / "adapter_model.safetensors").stat().st_size < 50_000
    cards = [(path / "README.md").read_text() for path in (tmp_path / "merged", apart)]
    assert all("LoRA of rank 4, alpha 8.0, on q_proj, v_proj" in card for card in cards)
    assert "merged into the weights" in cards[0] and "library_name: transformers" in cards[0]
    assert "library_name: peft\nbase_model: " in cards[1] and "PeftModel.from_pretrained" in cards[1]
    half = tmp_path / "half"
    assert exit_code(export_main, ["--checkpoint", str(tuned), "--adapter", "--dtype", "bfloat16", "--output", str(half)]) == 0
    assert {tensor.dtype for tensor in load_file(half / "adapter_model.safetensors").values()} == {torch.bfloat16}


def test_a_writer_without_an_adapter_has_none_apart(folder, tmp_path, capsys):
    save_writer(tmp_path / "final")
    code = exit_code(export_main, ["--checkpoint", str(tmp_path / "final"), "--adapter", "--output", str(tmp_path / "out")])
    assert code == 2 and "leave --adapter away" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
