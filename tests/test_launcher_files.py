"""configs/accelerate and configs/deepspeed: accelerate reads them, and the trainer makes of them what their names say."""

import json
import os

import pytest

ACCELERATE = {"cpu2": (2, 1), "gpu1": (1, 1), "gpu2": (2, 1), "gpu8": (8, 1), "nodes2": (16, 2)}
DEEPSPEED = [f"zero{stage}{offload}" for stage in (1, 2, 3) for offload in ("", "-offload")]


def test_no_file_is_forgotten(repository):
    assert {file.stem for file in (repository / "configs" / "accelerate").iterdir()} == set(ACCELERATE)
    assert {file.stem for file in (repository / "configs" / "deepspeed").iterdir()} == set(DEEPSPEED)


@pytest.mark.parametrize(("name", "processes", "machines"), [(name, *sizes) for name, sizes in ACCELERATE.items()])
def test_accelerate_reads_every_file(repository, name, processes, machines):
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(repository / "configs" / "accelerate" / f"{name}.yaml"))
    assert (config.num_processes, config.num_machines) == (processes, machines)
    assert config.deepspeed_config["zero_stage"] == 2


@pytest.mark.parametrize("name", DEEPSPEED)
def test_a_deepspeed_file_decides_stage_and_offload(repository, name, monkeypatch):
    from writer_rl.config import GRPOTrainer
    from writer_rl.train.deepspeed_config import zero_settings

    for variable in [variable for variable in os.environ if variable.startswith("ACCELERATE_DEEPSPEED")]:
        monkeypatch.delenv(variable)
    path = repository / "configs" / "deepspeed" / f"{name}.json"
    settings = json.loads(path.read_text())["zero_optimization"]
    wanted = (int(name[4]), "cpu" if name.endswith("offload") else "none")
    assert (settings["stage"], settings.get("offload_optimizer", {}).get("device", "none")) == wanted
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_CONFIG_FILE", str(path))
    assert zero_settings(GRPOTrainer(), "bfloat16") == wanted
