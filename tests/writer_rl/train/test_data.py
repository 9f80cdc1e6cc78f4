"""From names to networks and references; no network on two sides, none without a teacher."""

import json

import pytest

from memory_env.datafile import DataError
from tests.writer_rl.tiny_run import save_chats
from writer_rl.config import DataSection
from writer_rl.train.data import PRACTICE_NETWORKS, VALIDATION_NETWORKS, load_sources, load_training


def section(folder, **changes):
    names = {"train": str(folder / "networks"), "trajectories": str(folder / "trajectories"), "heldout": (), "validation": ()}
    return DataSection(**(names | changes))


def test_the_embedded_corpus_is_table_13():
    data = load_training(DataSection())
    assert (len(data), sum(taught.length for taught in data)) == (15, 73)
    assert all(len(taught.teacher.states) == taught.length for taught in data)
    assert len(load_sources(["corpus:validation"])) == VALIDATION_NETWORKS


def test_practice_networks_are_in_no_other_set():
    data = load_training(DataSection(train=("corpus:train", "corpus:practice")))
    assert len(data) == 15 + PRACTICE_NETWORKS


def test_files_with_their_trajectories(tmp_path):
    save_chats(tmp_path)
    data = load_training(section(tmp_path))
    assert [taught.network.network_id for taught in data] == ["chat_0", "chat_1"]
    assert [taught.length for taught in data] == [2, 3]
    assert [record.content for record in data[0].teacher.states[0].derived()] == ["likes tea"]


@pytest.mark.parametrize("side", ["heldout", "validation"])
def test_a_network_on_two_sides_is_refused(tmp_path, side):
    save_chats(tmp_path)
    with pytest.raises(DataError, match="chat_1"):
        load_training(section(tmp_path, **{side: str(tmp_path / "networks" / "chat_1.json")}))


def test_a_network_without_a_teacher_is_named(tmp_path):
    save_chats(tmp_path)
    (tmp_path / "trajectories" / "chat_1.json").unlink()
    with pytest.raises(DataError, match=r"chat_1.*data\.trajectories"):
        load_training(section(tmp_path))


def test_two_trajectories_of_one_network(tmp_path):
    save_chats(tmp_path)
    copy = (tmp_path / "trajectories" / "chat_1.json").read_text()
    (tmp_path / "trajectories" / "other.json").write_text(copy)
    with pytest.raises(DataError, match="chat_1"):
        load_training(section(tmp_path))


def test_a_file_that_is_no_trajectory(tmp_path):
    save_chats(tmp_path)
    (tmp_path / "trajectories" / "notes.json").write_text(json.dumps([1]))
    with pytest.raises(DataError, match=r"notes\.json"):
        load_training(section(tmp_path))


def test_one_source_named_twice(tmp_path):
    save_chats(tmp_path)
    with pytest.raises(DataError, match="twice"):
        load_training(section(tmp_path, train=(str(tmp_path / "networks"), str(tmp_path / "networks"))))


def test_no_networks_at_all():
    with pytest.raises(DataError, match=r"data\.train"):
        load_training(DataSection(train=()))


def test_windows_do_not_fit_the_corpus():
    with pytest.raises(DataError, match=r"data\.window"):
        load_training(DataSection(window=2))
