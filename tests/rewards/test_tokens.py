import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.tokens import UnknownTokenizer, paper_tokens, tokenizer, unicode_tokens, unseen_text_share
from tests.rewards import plain

SCRIPTS = "aZ09 é-ß İ 李雷 かな カナ 한국어 Зоя مرحبا नमस्ते ไทย ½ Ⅷ ｆｕｌｌ №7 \u0301 \U00020000 \U0001f600 _'!\n"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("Bob's tea-time, 7pm!", ["bob", "s", "tea", "time", "7pm"]),
        ("喜欢 tea 茶x", ["tea", "x", "喜", "欢", "茶"]),  # spans first, then CJK, as the published rule orders them
        ("snake_case", ["snake", "case"]),
        ("café", ["caf"]),
        ("Зоя かな 한국어", []),
        ("\u33ff\u3400\u9fff\ua000", ["\u3400", "\u9fff"]),
    ],
)
def test_the_papers_rule(text, tokens):
    assert paper_tokens(text) == tokens


@given(st.text(alphabet=SCRIPTS) | st.text())
def test_the_papers_rule_equals_its_definition(text):
    assert paper_tokens(text) == plain.tokens(text)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Ho visto un caffè perché", ["ho", "visto", "un", "caffè", "perché"]),
        ("Зоя любит чай", ["зоя", "любит", "чай"]),
        ("مرحبا بك ٧", ["مرحبا", "بك", "٧"]),
        ("한국어 회의", ["한국어", "회의"]),
        ("नमस्ते दोस्त", ["नमस्ते", "दोस्त"]),  # vowel signs stay with their word
        ("お茶 tea", ["tea", "お", "茶"]),
        ("ดีใจ", ["ดี", "ใ", "จ"]),  # so do they with a single character
        ("ｆｕｌｌ Ⅷ", ["full", "viii"]),
        ("\u0301 a\u0301 - \u0301", ["á"]),
        ("\U00020000x", ["x", "\U00020000"]),
        ("👍 ok", ["ok"]),
    ],
)
def test_every_script_has_tokens(text, tokens):
    assert unicode_tokens(text) == tokens


@given(st.text(alphabet="aB z09.,_-'\n\u3400\u674e\u9fff"))
def test_both_rules_agree_on_ascii_and_han(text):
    assert unicode_tokens(text) == paper_tokens(text)


@given(st.text(alphabet=SCRIPTS))
def test_composed_and_decomposed_text_are_the_same(text):
    assert unicode_tokens(unicodedata.normalize("NFD", text)) == unicode_tokens(unicodedata.normalize("NFC", text))


@given(st.text())
def test_tokens_hold_no_space_and_none_is_empty(text):
    for rule in (paper_tokens, unicode_tokens):
        assert all(token and not token.isspace() and " " not in token for token in rule(text))


def test_a_tokenizer_is_chosen_by_name():
    assert tokenizer("paper") is paper_tokens
    assert tokenizer("unicode") is unicode_tokens
    for wrong in ("Paper", "", None, ["paper"]):
        with pytest.raises(UnknownTokenizer, match="paper, unicode"):
            tokenizer(wrong)


def test_the_share_of_text_the_papers_rule_cannot_see():
    assert unseen_text_share("plain English, 2026") == 0
    assert unseen_text_share("喜欢") == 0
    assert unseen_text_share("café") == 0.25
    assert unseen_text_share(unicodedata.normalize("NFD", "café")) == 0.25
    assert unseen_text_share("Привет") == 1
    assert unseen_text_share(["Привет", "ok"]) == 0.75
    assert unseen_text_share([]) == unseen_text_share("") == unseen_text_share("!? 👍") == 0


@given(st.text(alphabet=SCRIPTS), st.text(alphabet=SCRIPTS))
def test_no_unseen_text_means_both_rules_see_as_many_characters(a, b):
    share = unseen_text_share([a, b])
    assert 0 <= share <= 1
    if share == 1:
        assert paper_tokens(unicodedata.normalize("NFC", a + " " + b)) == []
