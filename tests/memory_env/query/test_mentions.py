"""Who is named in a text."""

import pytest

from memory_env.query.mentions import find_mentions


@pytest.mark.parametrize(
    "text, roster, names",
    [
        ("What does alice think of BOB?", ("Alice", "Bob"), ["Alice", "Bob"]),
        ("Alice's view, and Bob’s", ("Alice", "Bob"), ["Alice", "Bob"]),
        ("Annabel sings", ("Anna", "Ann"), []),
        ("the Anna-Lena bridge", ("Anna",), []),
        ("Ann Lee and Ann", ("Ann", "Ann Lee"), ["Ann Lee", "Ann"]),
        ("What does Ann say?", ("Ann Lee", "Bob Ray"), ["Ann Lee"]),  # a given name that only one member has
        ("What does Ann say?", ("Ann Lee", "Ann Ray"), []),
        ("小明喜欢茶", ("小明", "小红"), ["小明"]),
        ("Does Alice (2) agree?", ("Alice", "Alice (2)"), ["Alice (2)"]),
        ("", ("Alice",), []),
    ],
)
def test_names_are_found_as_whole_words(text, roster, names):
    assert [mention.name for mention in find_mentions(text, roster)] == names


@pytest.mark.parametrize(
    "text, names",
    [
        ("What will Will say?", ["Will"]),
        ("Will Bob come?", ["Bob"]),
        ("Will the group meet?", []),
        ("What does Will think of May?", ["Will", "May"]),
        ("When may they meet, in may or later?", []),
        ("Hope said what about Bob?", ["Hope", "Bob"]),
    ],
)
def test_names_that_are_words_need_a_capital_and_a_place_for_a_name(text, names):
    assert [mention.name for mention in find_mentions(text, ("Bob", "Hope", "May", "Will"))] == names


def test_places_are_those_of_the_text():
    text = "Bob told Alice"
    assert [text[mention.start : mention.end] for mention in find_mentions(text, ("Alice", "Bob"))] == ["Bob", "Alice"]
