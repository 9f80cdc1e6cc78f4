"""Nobody ever finds a part of a file or folder, whatever breaks off its writing."""

import os
import stat

import pytest

from memory_env import files
from memory_env.files import new_folder, publish, write_text


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_write_that_breaks_off_leaves_the_old_file_alone(tmp_path, monkeypatch, moment):
    path = tmp_path / "there" / "a.txt"
    write_text(path, "old")

    def break_off(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, moment, break_off)
        with pytest.raises(KeyboardInterrupt):
            write_text(path, "new")
    assert path.read_text() == "old" and list(path.parent.iterdir()) == [path]
    write_text(path, "half a pair: \ud83d")
    assert path.read_text() == "half a pair: \\ud83d"


def test_a_file_is_like_any_other_unless_it_is_private(tmp_path, umask):
    write_text(tmp_path / "a", "x")
    write_text(tmp_path / "key", "x", private=True)
    with new_folder(tmp_path / "folder") as draft:
        (draft / "b").write_text("x")
    assert (mode(tmp_path / "a"), mode(tmp_path / "key"), mode(tmp_path / "folder")) == (0o640, 0o600, 0o750)


@pytest.mark.parametrize("moment", [(files, "_sync"), (files.Path, "rename")])
def test_a_folder_is_there_whole_or_not_at_all(tmp_path, monkeypatch, moment):
    path = tmp_path / "out"

    def break_off(*_):
        raise KeyboardInterrupt

    def fill(text):
        with new_folder(path) as draft:
            assert draft.parent == tmp_path  # one file system: the last step is a rename
            (draft / "inner").mkdir()
            (draft / "inner" / "a").write_text(text)

    with monkeypatch.context() as patch:
        patch.setattr(*moment, break_off)
        with pytest.raises(KeyboardInterrupt):
            fill("x")
    assert list(tmp_path.iterdir()) == []
    path.mkdir()
    fill("y")
    assert (path / "inner" / "a").read_text() == "y" and list(tmp_path.iterdir()) == [path]


def test_a_folder_that_holds_something_is_never_taken(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    with pytest.raises(OSError), new_folder(tmp_path / "out") as draft:
        (draft / "a").write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == ["out"] and (tmp_path / "out" / "mine").is_file()


def test_publishing_replaces_what_a_killed_run_left(tmp_path):
    for name, text in (("final", "left over"), ("draft", "whole")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text(text)
    publish(tmp_path / "draft", tmp_path / "final")
    assert (tmp_path / "final" / "a").read_text() == "whole" and not (tmp_path / "draft").exists()
