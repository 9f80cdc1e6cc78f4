"""Checkpoints: whole or absent, the last and the best kept, another model's or another world's refused."""

import json
import random
import shutil

import numpy as np
import pytest
import torch

from tests.writer_rl.tiny_run import make_model, make_tokenizer
from tests.writer_rl.train.test_backend import accumulate, build, parameters, ragged_samples
from writer_rl.config import GRPOTrainer
from writer_rl.model.policy import Policy
from writer_rl.train import checkpoint as module
from writer_rl.train.backend import Backend
from writer_rl.train.checkpoint import CheckpointError, Checkpoints, find_checkpoint, read_state
from writer_rl.train.distributed import connect


@pytest.fixture(scope="module")
def world():
    return connect(threads=1)


@pytest.fixture
def trained(world):
    backend = build(world)
    accumulate(backend, [ragged_samples()])
    backend.step()
    return backend


def save(folder, world, backend, numbers, keep=2, best=()):
    checkpoints = Checkpoints(folder, world, keep)
    for number in numbers:
        checkpoints.save(number, backend, make_tokenizer(), {"round": number}, best=number in best)
    return checkpoints


def test_everything_comes_back(tmp_path, world, trained):
    random.seed(1), np.random.seed(2), torch.manual_seed(3)
    checkpoints = save(tmp_path, world, trained, [4])
    draws = [random.random(), np.random.rand(), torch.rand(1).item()]
    fresh = build(world)
    state = checkpoints.restore(checkpoints.latest(), fresh)
    assert state["round"] == 4
    assert [random.random(), np.random.rand(), torch.rand(1).item()] == draws
    assert all(torch.equal(tensor, parameters(trained)[name]) for name, tensor in parameters(fresh).items())


@pytest.mark.parametrize("stage", [0, 2, 3])
@pytest.mark.parametrize("tied", [True, False])
def test_the_model_folder_is_plain_hugging_face(tmp_path, world, stage, tied):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    backend = Backend(Policy(make_model(tied=tied)), GRPOTrainer(zero_stage=stage, lr=1e-2), world)
    accumulate(backend, [ragged_samples()])
    backend.step()
    folder = save(tmp_path, world, backend, [1]).latest() / "model"
    loaded = AutoModelForCausalLM.from_pretrained(folder)
    assert loaded.config.tie_word_embeddings is tied
    ids = torch.tensor([[3, 4, 5, 6]])
    expected = backend.engine.module.model(input_ids=ids).logits
    assert torch.allclose(loaded(input_ids=ids).logits, expected, atol=1e-6)
    assert AutoTokenizer.from_pretrained(folder).chat_template == make_tokenizer().chat_template


def test_the_last_ones_and_the_best_stay(tmp_path, world, trained):
    checkpoints = save(tmp_path, world, trained, range(1, 7), keep=2, best={2})
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.isdigit()) == ["000002", "000005", "000006"]
    assert (checkpoints.latest().name, checkpoints.best().name) == ("000006", "000002")


def test_light_ones_hold_weights_alone_and_have_a_keep_rule_of_their_own(tmp_path, world, trained):
    checkpoints = Checkpoints(tmp_path, world, keep=1, keep_weights=2)
    for number in range(1, 10):
        state = {"round": number}
        checkpoints.save(number, trained, make_tokenizer(), state, best=number == 2, light=number not in (4, 8))
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.isdigit()) == ["000002", "000007", "000008", "000009"]
    assert sorted(p.name for p in (tmp_path / "000009").iterdir()) == ["model", "state.json"]
    assert (checkpoints.latest().name, checkpoints.best().name) == ("000008", "000002")
    assert find_checkpoint(tmp_path).name == "000009" and find_checkpoint(tmp_path, resumable=True).name == "000008"
    (tmp_path / "latest").unlink()
    assert checkpoints.latest().name == "000008"


def test_a_light_one_takes_no_other_ones_place_and_no_run_goes_on_from_it(tmp_path, world, trained):
    checkpoints = save(tmp_path, world, trained, [3])
    checkpoints.save(3, trained, make_tokenizer(), {"round": 3}, best=True, light=True)
    assert checkpoints.best() == checkpoints.latest() and (tmp_path / "000003" / "engine").is_dir()
    light = checkpoints.save(4, trained, make_tokenizer(), {"round": 4}, light=True)
    with pytest.raises(CheckpointError, match=r"weights alone.*--model.path .*000004/model, or go on from .*000003"):
        checkpoints.restore(light, trained)


@pytest.mark.parametrize("stage", [0, 2, 3])
def test_an_adapters_checkpoints_leave_the_frozen_base_out_and_come_back(tmp_path, world, stage):
    from writer_rl.config import LoRASection, ModelSection
    from writer_rl.model.lora import add_adapter

    sizes = {"hidden_size": 128, "intermediate_size": 256}

    def adapted(seed, base=0):
        policy = add_adapter(Policy(make_model(seed=base, **sizes)), ModelSection(lora=LoRASection(rank=2)), seed=seed)
        return Backend(policy, backend_settings, world)

    backend_settings = GRPOTrainer(zero_stage=stage, lr=1e-2)
    backend = adapted(0)
    accumulate(backend, [ragged_samples()])
    backend.step()
    checkpoints = save(tmp_path, world, backend, [1])
    frozen = sum(p.numel() for p in make_model(**sizes).parameters()) * 4
    written = sum(file.stat().st_size for file in (tmp_path / "000001" / "engine").rglob("*") if file.is_file())
    assert written < frozen / 2
    with pytest.raises(CheckpointError, match="trained on another base than model.path has now"):
        Checkpoints(tmp_path, world).restore(checkpoints.latest(), adapted(0, base=8))
    fresh = adapted(1)
    Checkpoints(tmp_path, world).restore(checkpoints.latest(), fresh)
    for each in (backend, fresh):
        accumulate(each, [ragged_samples()])
        each.step()
    ours, theirs = (module.whole_weights(each) for each in (backend, fresh))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("moment", [(module, "save_hf"), (module, "publish"), (module, "write_text")])
def test_a_save_that_breaks_off_leaves_the_one_before(tmp_path, world, trained, monkeypatch, moment):
    checkpoints = save(tmp_path, world, trained, [1])

    def break_off(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*moment, break_off)
        with pytest.raises(KeyboardInterrupt):
            save(tmp_path, world, trained, [2])
    assert checkpoints.latest().name == "000001"
    assert checkpoints.restore(checkpoints.latest(), build(world))["round"] == 1
    save(tmp_path, world, trained, [2])
    assert checkpoints.latest().name == "000002"
    assert not list(tmp_path.glob(".*.draft"))


def test_the_pointer_moves_last(tmp_path, world, trained, monkeypatch):
    seen = []
    monkeypatch.setattr(
        module, "write_text", lambda path, text: seen.append((path.name, (tmp_path / "000001" / "state.json").is_file()))
    )
    save(tmp_path, world, trained, [1])
    assert seen == [("latest", True)]


def test_another_models_checkpoint_is_refused(tmp_path, world, trained):
    checkpoints = save(tmp_path, world, trained, [1])
    other = Backend(Policy(make_model(hidden_size=16)), GRPOTrainer(), world)
    with pytest.raises(CheckpointError, match="another model"):
        checkpoints.restore(checkpoints.latest(), other)


@pytest.mark.parametrize(("key", "value"), [("world_size", 4), ("zero_stage", 2)])
def test_other_shards_are_refused_with_the_remedy(tmp_path, world, key, value):
    backend = build(world, stage=1)
    checkpoints = save(tmp_path, world, backend, [1])
    file = checkpoints.latest() / "state.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    with pytest.raises(CheckpointError, match=r"--model\.path .*000001/model"):
        checkpoints.restore(checkpoints.latest(), build(world, stage=1))


def test_without_shards_any_number_of_ranks_can_go_on(tmp_path, world, trained):
    checkpoints = save(tmp_path, world, trained, [1])
    file = checkpoints.latest() / "state.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"world_size": 4}))
    assert checkpoints.restore(checkpoints.latest(), build(world))["round"] == 1


def test_finding_one_from_any_folder_around_it(tmp_path, world, trained):
    save(tmp_path / "run" / "checkpoints", world, trained, [1, 2], best={1})
    assert find_checkpoint(tmp_path / "run" / "checkpoints" / "best").name == "000001"
    assert find_checkpoint(tmp_path / "run" / "checkpoints" / "latest").name == "000002"
    newest = tmp_path / "run" / "checkpoints" / "000002"
    for place in ("run", "run/checkpoints", "run/checkpoints/000002"):
        assert find_checkpoint(tmp_path / place) == newest
    with pytest.raises(CheckpointError, match="no checkpoint"):
        find_checkpoint(tmp_path)


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", '{"format": 99}'])
def test_what_is_no_checkpoint(tmp_path, content):
    if content is not None:
        (tmp_path / "state.json").write_text(content)
    with pytest.raises(CheckpointError):
        read_state(tmp_path)


def test_going_on_from_an_older_one_forgets_the_younger(tmp_path, world, trained):
    checkpoints = save(tmp_path, world, trained, [1, 2, 3], keep=9)
    checkpoints.forget_after(1)
    save(tmp_path, world, trained, [2], keep=1)
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.isdigit()) == ["000002"]
    assert checkpoints.latest().name == "000002"


def test_a_pointer_to_nothing_is_no_checkpoint(tmp_path, world, trained):
    checkpoints = save(tmp_path, world, trained, [1])
    shutil.rmtree(tmp_path / "000001")
    assert checkpoints.latest() is None


def test_a_copy_that_lost_its_pointer_is_still_known(tmp_path, world, trained):
    checkpoints = save(tmp_path, world, trained, [9, 10], best=[9])
    (tmp_path / "latest").unlink()
    (tmp_path / "000011").mkdir()
    assert checkpoints.latest().name == find_checkpoint(tmp_path).name == "000010"
    (tmp_path / "best").unlink()
    assert checkpoints.best() is None


@pytest.mark.parametrize("kind", ["engine", "rng"])
@pytest.mark.parametrize("left", [0, 100])
def test_a_damaged_file_is_one_line_with_the_remedy(tmp_path, world, trained, kind, left):
    checkpoints = save(tmp_path, world, trained, [1])
    for file in tmp_path.glob("000001/engine/*.pt" if kind == "engine" else "000001/rng-*.pt"):
        file.write_bytes(file.read_bytes()[:left])
    with pytest.raises(CheckpointError, match="000001: is damaged .*--trainer.resume") as caught:
        checkpoints.restore(checkpoints.latest(), build(world))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
