"""What is marked as forwarded from a forgotten member."""

import pytest

from memory_env.store.forwards import without_forwarded


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("[forwarded from Ann] I am ill", "[forwarded from Ann] [forgotten]"),
        ("Forwarded message from ann: I am ill\nand more", "Forwarded message from ann: [forgotten]"),
        ("[forwarded from Anna] I am ill", "[forwarded from Anna] I am ill"),
        ("[forwarded] I am ill", "[forwarded] I am ill"),
        ("look: [forwarded from Ann] is how it begins", "look: [forwarded from Ann] is how it begins"),
        ("[forwarded from Ann]", "[forwarded from Ann]"),
    ],
)
def test_their_words_go_and_no_others(text, left):
    cut = without_forwarded(text, lambda name: name.casefold() == "ann")
    assert cut == left
    assert without_forwarded(cut, lambda name: name.casefold() == "ann") == left
