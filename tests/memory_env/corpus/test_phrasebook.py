"""Wordings with choices: what they can become, and what is drawn from them."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.corpus.dice import Dice
from memory_env.corpus.home import HOME
from memory_env.corpus.invented import LETTER_GROUPS, invented
from memory_env.corpus.phrasebook import disturbed, drawn, expansions, pattern
from memory_env.corpus.unseen import UNSEEN
from memory_env.corpus.wide import NOISY, WIDE

WORDINGS = st.lists(
    st.text("ab |{v}.", max_size=6).map(lambda s: s.replace("|", "")) | st.text("ab|.", max_size=6).map("[{}]".format)
)


def test_a_choice_becomes_each_of_its_parts():
    assert sorted(expansions("I [eat|munch] {v}[ again|]")) == [
        "I eat {v}",
        "I eat {v} again",
        "I munch {v}",
        "I munch {v} again",
    ]
    assert list(expansions("I eat {v}")) == ["I eat {v}"]


@given(WORDINGS.map("".join), st.integers(0, 1_000))
def test_what_is_drawn_is_an_expansion_and_matches(wording, seed):
    text = drawn(wording, Dice(seed))
    assert text in set(expansions(wording)) and pattern(wording).fullmatch(text)


@given(WORDINGS.map("".join), st.text("ab{v}. ", max_size=12))
def test_the_pattern_matches_expansions_alone(wording, text):
    assert bool(pattern(wording).fullmatch(text)) == (text in set(expansions(wording)))


def test_a_wording_without_choices_draws_nothing():
    one, other = Dice(3), Dice(3)
    assert drawn("I eat {v}", one) == "I eat {v}" and one.below(1_000) == other.below(1_000)


@given(st.integers(0, 10_000), st.sampled_from([text for text in WIDE.wordings() if "[" not in text] + ["{a}, {b}, {c} go"]))
def test_noise_keeps_every_slot_and_adds_at_most_three_words(seed, template):
    text = disturbed(template, Dice(seed), ("zzz",))
    assert sorted(re.findall(r"\{.\}", text)) == sorted(re.findall(r"\{.\}", template))
    assert text.split().count("zzz") <= 3 and len(text.split()) <= len(template.split()) + 3


def test_what_is_withheld_is_never_said():
    book = replace(HOME, withheld=frozenset({"I eat {v}", "I like {v}"}))
    assert {book.drawn("I [eat|like|buy] {v}", Dice(seed)) for seed in range(50)} == {"I buy {v}"}
    assert NOISY.withheld == {*HOME.wordings(), *UNSEEN.wordings()}


@pytest.mark.parametrize("book", [HOME, UNSEEN, WIDE], ids=lambda book: book.name)
def test_every_language_says_the_same_kinds_of_facts(book):
    for table in ("values", "self_add", "self_change", "observation_add", "report_add", "self_trap", "other_trap"):
        assert list(getattr(book, table)) == list(getattr(HOME, table)), table
    assert set(book.relation_add) == set(book.relations)
    for field, slots in (
        ("event_add", "eds"),
        ("event_change", "eds"),
        ("dish_add", "ev"),
        ("norm_add", "rw"),
        ("exception_add", "rb"),
    ):
        for wording in getattr(book, field):
            assert all(set(slots) == set(re.findall(r"\{(.)\}", text)) for text in expansions(wording)), wording


def test_invented_words_are_the_same_everywhere_and_none_of_another_language():
    assert invented(5, Dice(1), ()) == invented(5, Dice(1), ())
    assert not set(invented(400, Dice(1), (taken := invented(400, Dice(1), ())))) & set(taken)
    assert len(set(LETTER_GROUPS)) == len(LETTER_GROUPS) and all(2 <= len(group) <= 3 for group in LETTER_GROUPS)
    assert len(WIDE.names) == len(set(WIDE.names)) == 160 and not set(WIDE.names) & set(WIDE.days)
