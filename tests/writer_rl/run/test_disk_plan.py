"""The plan of disk and of a run's states, against the files and tensors of real DeepSpeed engines."""


import pytest
import torch

from tests.writer_rl.tiny_run import make_model, make_tokenizer, save_config, save_writer
from tests.writer_rl.train.test_backend import accumulate, ragged_samples
from writer_rl.config import GRPOConfig, GRPOTrainer, LoRASection, ModelSection, load_config
from writer_rl.model.lora import add_adapter
from writer_rl.model.policy import Policy
from writer_rl.model.shape import ModelShape
from writer_rl.run.disk_plan import disk_plan
from writer_rl.run.doctor import DoctorError, disk, require
from writer_rl.run.plan import RunShape, plan
from writer_rl.run.run_plan import disk_needed, resource_lines
from writer_rl.train.backend import Backend
from writer_rl.train.checkpoint import Checkpoints
from writer_rl.train.distributed import connect

SIZES = {"hidden_size": 256, "intermediate_size": 512}


@pytest.fixture(scope="module")
def world():
    return connect(threads=1)


def trained(world, stage, dtype="float32", rank=0):
    model = make_model(**SIZES)
    policy = Policy(model.to(torch.bfloat16) if dtype == "bfloat16" else model)
    if rank:
        policy = add_adapter(policy, ModelSection(lora=LoRASection(rank=rank)), seed=0)
    backend = Backend(policy, GRPOTrainer(zero_stage=stage, lr=1e-2), world, dtype=dtype)
    accumulate(backend, [ragged_samples()])
    backend.step()
    return backend


def shape():
    return ModelShape.from_config(make_model(**SIZES).config.to_dict())


def settings(stage, dtype="float32", rank=0, **trainer):
    model = ModelSection(dtype=dtype, lora=LoRASection(rank=rank))
    return GRPOConfig(model=model, trainer=GRPOTrainer(zero_stage=stage, **trainer))


def size(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


CASES = [("float32", 0), ("float32", 1), ("float32", 2), ("float32", 3), ("bfloat16", 1), ("bfloat16", 2), ("bfloat16", 3)]


@pytest.mark.parametrize("rank", [0, 64])
@pytest.mark.parametrize(("dtype", "stage"), CASES)
def test_a_checkpoint_has_the_size_that_was_planned(tmp_path, world, dtype, stage, rank):
    checkpoints = Checkpoints(tmp_path, world)
    whole = checkpoints.save(1, trained(world, stage, dtype, rank), make_tokenizer(), {"round": 1})
    light = checkpoints.save(2, trained(world, stage, dtype, rank), make_tokenizer(), {"round": 2}, light=True)
    planned = disk_plan(shape(), settings(stage, dtype, rank), rounds=1)
    assert size(whole) == pytest.approx(planned.resumable, rel=0.05)
    assert size(light) == pytest.approx(planned.light, rel=0.05)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_states_in_memory_are_those_of_the_plan(world, stage):
    backend = trained(world, stage, "bfloat16")
    planned = plan(shape(), RunShape(zero=stage))
    masters = getattr(backend.optimizer, "fp32_partitioned_groups_flat", None)  # ZeRO-3's; the others give them to AdamW
    masters = masters or [p for group in backend.optimizer.optimizer.param_groups for p in group["params"]]
    moments = [t for state in backend.optimizer.optimizer.state.values() for t in state.values() if t.dim()]
    optimizer = sum(t.numel() * t.element_size() for t in (*masters, *moments))
    assert optimizer == pytest.approx(planned.optimizer, rel=0.05)
    weights = [getattr(p, "ds_tensor", p) for p in backend.policy.parameters()]
    assert sum(t.numel() * t.element_size() for t in weights) == pytest.approx(planned.weights, rel=0.05)


def test_the_fullest_moment_by_hand():
    """10 rounds, one to go on from every 2 and 1 kept, light ones every 3 and 2 kept, 5 evaluations."""
    chosen = settings(2, checkpoint_every=2, keep_checkpoints=1, weights_every=3, keep_weights=2)
    found = disk_plan(shape(), chosen, rounds=10, evaluations=5)
    assert found.fullest == 2 * found.resumable + (3 + 1) * found.light
    assert found.written == 5 * found.resumable + (3 + 5) * found.light
    short = disk_plan(shape(), chosen, rounds=1)
    assert short.fullest == short.resumable, "nothing older is kept beside the first"


def test_the_number_of_rounds_alone_asks_for_no_room():
    assert disk_plan(shape(), settings(2), rounds=10**6).fullest == disk_plan(shape(), settings(2), rounds=10).fullest


def test_a_run_that_its_disk_cant_hold_is_refused_with_both_numbers(tmp_path):
    assert disk(tmp_path, 1).state == "ok"
    with pytest.raises(DoctorError, match=r"disk: .* GiB free in .*, 1000000.0 GiB needed; .*trainer.keep_checkpoints"):
        require([disk(tmp_path, 1_000_000 * 2**30)])


def test_what_a_run_has_written_already_counts_as_free(tmp_path):
    config = load_config("grpo", save_config(tmp_path), ["--output_dir", str(tmp_path / "run")])
    save_writer(tmp_path / "writer")
    whole = disk_needed(config, 4)
    (tmp_path / "run" / "checkpoints" / "000001").mkdir(parents=True)
    (tmp_path / "run" / "checkpoints" / "000001" / "x").write_bytes(b"x" * 1000)
    assert whole - disk_needed(config, 4) == 1000
    (line,) = resource_lines(config, 4)
    assert line.startswith("disk ") and "at its fullest" in line


def test_a_model_that_is_not_there_yet_is_no_error(tmp_path):
    config = load_config("grpo", save_config(tmp_path), ["--model.path", str(tmp_path / "to-come" / "final")])
    assert disk_needed(config, 4) == 0
    assert "unknown before the model is there" in resource_lines(config, 4)[0]
