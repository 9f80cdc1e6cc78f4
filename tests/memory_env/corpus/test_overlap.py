"""What two sets share, and that nothing which trains a Writer shares a name, a value or a wording with `corpus:unseen`."""

import re
import subprocess
import sys

import pytest

from memory_env.corpus import LANGUAGES, overlap
from memory_env.corpus.overlap import Traits, named_set, shares, traits
from memory_env.corpus.phrasebook import pattern, words
from memory_env.corpus.unseen import UNSEEN
from memory_env.datafile import DataError
from tests.conftest import ROOT

EVERYDAY = set(words("a an are at after always before bring during in keep met never no on own share write"))
"""Words that stand in values of several languages: they name nothing."""


@pytest.fixture(scope="module")
def unseen():
    return traits(named_set("unseen"))


def test_shares_are_those_of_the_first_set():
    def some(*texts):
        return Traits(*[frozenset(texts)] * 5, frozenset((text, text) for text in texts))

    none = Traits(*[frozenset()] * 6)
    assert set(shares(some("a", "b", "c", "d"), some("b", "x")).values()) == {0.25}
    assert set(shares(some("b"), some("a", "b", "c", "d")).values()) == {1.0}
    assert set(shares(none, some("a")).values()) == {0.0}


@pytest.mark.parametrize("name", ["train", "practice", "validation", "base", "sft"])
def test_nothing_of_unseen_is_in_a_set_that_trains_or_chooses_a_writer(unseen, name, monkeypatch):
    monkeypatch.setattr(overlap, "SAMPLE", 150)
    assert set(shares(unseen, traits(named_set(name))).values()) == {0.0}


def test_the_heldout_set_shares_its_language_with_training():
    found = shares(traits(named_set("heldout")), traits(named_set("practice")))
    assert found["names"] == found["values"] == found["templates"] == 1.0 and 0 < found["answers"] < found["texts"] < 1


def test_no_wording_of_training_can_become_one_of_unseen():
    """Not in the conversations that were drawn, but in any that could be."""
    theirs = [pattern(wording) for book in LANGUAGES.values() for wording in book.wordings()]
    assert "unseen" not in LANGUAGES
    assert [text for text in UNSEEN.wordings() if any(each.fullmatch(text) for each in theirs)] == []


def test_no_name_or_value_of_unseen_stands_in_a_name_a_value_or_a_sentence_of_training():
    def written(texts):
        return {word for text in texts for word in re.findall("[a-z]+", re.sub(r"\{.\}", " ", text).lower())}

    seen = set().union(*(written([*book.words(), *book.wordings()]) for book in LANGUAGES.values()))
    assert written(UNSEEN.words()) & seen <= EVERYDAY
    assert len(written(UNSEEN.words()) - EVERYDAY) > 150


@pytest.mark.parametrize("name", ["practice-0", "practice-226", "practice-x", "nothing", "practice-4-5"])
def test_an_unknown_set_is_named(name):
    with pytest.raises(DataError, match=name):
        named_set(name)


def test_the_script_prints_the_shares():
    command = [sys.executable, "launch/corpus.py", "overlap"]
    printed = subprocess.run([*command, "heldout", "train"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    rows = {line.split()[0]: line.split()[1:] for line in printed.splitlines()[1:]}
    assert rows["names"] == ["22", "90.9%"] and list(rows) == ["names", "values", "templates", "texts", "contents", "answers"]
    wrong = subprocess.run([*command, "heldout", "nothing"], cwd=ROOT, capture_output=True, text=True)
    assert wrong.returncode == 2 and "nothing" in wrong.stderr and wrong.stderr.count("\n") == 1
