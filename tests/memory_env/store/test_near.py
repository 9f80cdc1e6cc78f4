from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.store.near import ComparedMessage, matched, words_key

NINE = 1_717_232_400.0  # 2024-06-01T09:00:00Z


def said(*told, at=NINE, speaker="Mia"):
    return [each if isinstance(each, ComparedMessage) else ComparedMessage(speaker, at, each) for each in told]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("[IMG-7.jpg]", "[media]", True), ("[image]", "[PHOTO-2.HEIC]", True), ("[photo]\nthe hut", "The hut! [media]", True),
        ("[media]", "hello", False), ("[sic]", "[media]", False), ("the hut", "[media]\nthe hut", False),
        ("Yes!", "yes", True), ("Zoe\u0308", "Zoë", True), ("👍", "👎", False),
        ("[poll: Where? Options: North (1 vote)]", "[poll: Where? Options: North (5 votes)]", True),
        ("[poll: Where? Options: North (1 vote)]", "[poll: Where? Options: South (1 vote)]", False),
    ],
)  # fmt: skip
def test_what_every_export_writes_alike(one, other, same):
    assert (words_key(one) == words_key(other)) is same


@pytest.mark.parametrize(
    ("held", "told", "expected"),
    [
        # One held message answers for one told message.
        (said("ok"), said("ok", "ok"), [0, None]),
        (said("ok", "ok"), said("ok", "ok", "ok"), [0, 1, None]),
        # Seconds are left out by some phones; two that give them differ by them.
        (said("ok", at=NINE), said("ok", at=NINE + 41), [0]),
        (said("ok", at=NINE + 5), said("ok", at=NINE + 41), [None]),
        (said("ok", at=NINE + 5), said("ok", at=NINE + 61), [None]),
        # Whoever speaks, whatever they say.
        (said("ok"), said("ok", speaker="Lee"), [None]),
        (said("ok"), said("no"), [None]),
        # The exact one is taken before a near one.
        (said("OK", "ok"), said("ok", "OK"), [1, 0]),
        # An edited text is the version of what is left; of several the one that shares words.
        (said("meet at 7"), [ComparedMessage("Mia", NINE, "meet at 8", "edited")], [0]),
        (said("bring rope", "meet at 7"), [ComparedMessage("Mia", NINE, "bring rope"), ComparedMessage("Mia", NINE, "meet at 8", "edited")], [0, 1]),
        ([ComparedMessage("Mia", NINE, "meet at 8", "edited")], said("meet at 7"), [0]),
        (said("one two", "three four"), [ComparedMessage("Mia", NINE, "five six", "edited")], [None]),
        (said("meet at 7"), said("meet at 8"), [None]),
        # Without any time: the same words of one speaker, in order.
        (said("hi", "yes", at=None), said("hi", "yes", "yes", at=None), [0, 1, None]),
    ],
)
def test_which_held_message_a_told_one_is(held, told, expected):
    assert matched(held, told) == expected


MESSAGES = st.lists(
    st.builds(ComparedMessage, st.sampled_from("AB"), st.sampled_from([NINE, NINE + 5, NINE + 60, None]), st.sampled_from(["x", "X!", "[media]"])),
    max_size=12,
)


@given(MESSAGES, MESSAGES)
def test_no_held_message_is_used_twice_and_only_for_its_likes(held, told):
    found = matched(held, told)
    used = Counter(index for index in found if index is not None)
    assert all(count == 1 for count in used.values())
    for each, index in zip(told, found, strict=True):
        if index is not None:
            assert held[index].speaker == each.speaker and words_key(held[index].content) == words_key(each.content)


@given(MESSAGES)
def test_everything_is_known_from_itself_and_nothing_more(messages):
    assert matched(messages, messages).count(None) == 0
    assert matched(messages, messages + messages).count(None) == len(messages)
