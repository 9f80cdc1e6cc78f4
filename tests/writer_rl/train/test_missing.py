"""What is not there yet is named with the command that makes it."""

import shlex

import pytest

from launch.prepare import arguments
from memory_env.datafile import DataError
from writer_rl.config import DataSection, ModelSection
from writer_rl.train.data import load_sources, trajectory_files
from writer_rl.train.missing import missing_data, missing_model


def command_of(line):
    return shlex.split(line.split("`")[1])


def test_every_missing_part_has_a_command_that_writes_it(tmp_path):
    chats, teacher = tmp_path / "chats", tmp_path / "teacher"
    names = {"train": [f"{chats}/train", "corpus:train"], "heldout": f"{chats}/heldout", "validation": f"{tmp_path}/all/networks"}
    settings = DataSection(trajectories=f"{teacher}/trajectories", window=4, **names)
    lines = missing_data(settings)
    assert [line.split(": ")[1] for line in lines] == [
        f"{chats}/train", f"{chats}/heldout", f"{tmp_path}/all/networks", f"{teacher}/trajectories",
    ]  # fmt: skip
    asked = [arguments(command_of(line)[2:]) for line in lines]
    assert [(each.command, each.output) for each in asked] == [
        ("read", str(chats)), ("read", str(chats)), ("read", f"{tmp_path}/all"), ("teach", str(teacher)),
    ]  # fmt: skip
    assert asked[3].networks == f"{chats}/train" and asked[3].window == 4
    for folder in (chats / "train", chats / "heldout", tmp_path / "all" / "networks", teacher / "trajectories"):
        folder.mkdir(parents=True)
    assert missing_data(settings) == []


def test_a_run_that_meets_them_says_the_same(tmp_path):
    with pytest.raises(DataError, match=r"nets/train: no such file or folder; make it with `python launch/prepare.py read"):
        load_sources([str(tmp_path / "nets" / "train")])
    with pytest.raises(DataError, match=r"t/trajectories: no such .* `python launch/prepare.py teach"):
        trajectory_files([str(tmp_path / "t" / "trajectories")])


def test_a_writer_that_sft_is_still_to_make(tmp_path):
    settings = ModelSection(path=str(tmp_path / "sft" / "final"))
    assert f"output_dir {tmp_path / 'sft'}" in missing_model(settings)[0] and "launch/sft.py" in missing_model(settings)[0]
    (tmp_path / "sft" / "final").mkdir(parents=True)
    assert missing_model(settings) == missing_model(ModelSection(path="Qwen/Qwen2.5-3B-Instruct")) == []
