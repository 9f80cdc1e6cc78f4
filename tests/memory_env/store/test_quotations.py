import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.store.quotations import CUT, Quotations, folded_words

SAID = "I moved to Oslo last spring with my cat"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"she wrote: {SAID}. Lovely!", f"she wrote: {CUT}. Lovely!"),
        ("so you MOVED to Oslo, last spring, with my   cat?", f"so you {CUT}?"),
        (f"> {SAID}\nreally?", f"> {CUT}\nreally?"),
        ("you say “moved to Oslo”, I say no", f"you say “{CUT}”, I say no"),
        ("Oslo last spring was cold", "Oslo last spring was cold"),
        ('she is "fine"', 'she is "fine"'),
        ("I moved to Oslo too", "I moved to Oslo too"),
    ],
)
def test_what_is_cut_and_what_stays(text, left):
    assert Quotations([(1.0, SAID)]).cut(text, 2.0) == left


def test_short_messages_are_cut_whole():
    quotes = Quotations([(1.0, "my PIN is 9041"), (1.0, "ok"), (1.0, "see you")])
    assert quotes.cut("he told me: my pin is 9041!", 2.0) == f"he told me: {CUT}!"
    assert quotes.cut("ok, see you", 2.0) == "ok, see you"
    assert quotes.cut('you said "see you"', 2.0) == f'you said "{CUT}"'


def test_scripts_without_spaces():
    quotes = Quotations([(1.0, "我下个月要搬到奥斯陆去住了")])
    assert quotes.cut("她说我下个月要搬到奥斯陆去住了。真的？", 2.0) == f"她说{CUT}。真的？"


def test_words_that_another_said_first_are_theirs():
    quotes = Quotations([(5.0, "happy new year to all of you my friends")])
    assert CUT not in quotes.cut("Happy new year to all of you my friends", 1.0)
    assert quotes.cut("happy new year to all of you my friends", 9.0) == "happy new year to all of you my friends"


def test_what_was_said_before_is_no_quotation():
    assert Quotations([(5.0, SAID)]).cut(SAID, 1.0) == SAID


def test_folding_that_changes_lengths_cuts_at_the_right_place():
    quotes = Quotations([(1.0, "die große Straße in Weißensee gefällt mir")])
    assert quotes.cut("ẞß: die GROSSE Strasse in Weißensee gefällt mir! ja", 2.0) == f"ẞß: {CUT}! ja"


@given(st.lists(st.text(max_size=40), max_size=5), st.text(max_size=60))
def test_nothing_quoted_is_left_and_a_cut_text_stays_as_it_is(texts, text):
    quotes = Quotations([(0.0, said) for said in texts])
    once = quotes.cut(text, 1.0)
    assert not quotes.in_text(once, 1.0) or CUT in once
    for said in texts:
        words = folded_words(said)
        if len(words) >= 3 and sum(map(len, words)) >= 10:
            assert " ".join(words) not in " ".join(folded_words(quotes.cut(f"{text} {said}", 1.0)))
