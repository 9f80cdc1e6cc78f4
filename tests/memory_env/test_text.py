import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.text import break_control_tokens, normalise, one_line, words

MARKERS = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<s>", "</s>",
    "<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "<\uff5cUser\uff5c>", "<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<think>", "</think>",
]  # fmt: skip


def test_normalised_content_ignores_case_and_whitespace_only():
    assert normalise("  Alice\tOWNS\n\nit. ") == "alice owns it."
    assert normalise("Alice owns it") != normalise("Alice owns it.")


def test_words_of_every_script():
    assert words("Don't stop, 2 Cafés!") == ["don", "t", "stop", "2", "cafés"]
    assert words("我爱Tea") == ["我", "爱", "tea"]
    assert words("ひらカナ한국") == list("ひらカナ한국")
    assert words("Привет мир") == ["привет", "мир"]


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_fast_path_for_ascii_finds_the_same_words(text):
    assert words(text) == [word for word in words(text + " é") if word != "é"]


@given(st.text(alphabet=st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Co", "L", "N", "Zs", "So"])))
def test_one_line_is_one_line_and_utf8(text):
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    line.encode("utf-8")
    assert one_line(line) == line


def test_one_line_keeps_what_people_write_and_shows_what_hides():
    family = "👨\u200d👩\u200d👧 Zoë, 한국 – ok\u00a0!"
    assert one_line(family) == family
    assert one_line("a\nb\r\x00\u202e\u2028\ud800") == "a\\nb\\r\\x00\\u202e\\u2028\\ud800"


@pytest.mark.parametrize("marker", MARKERS)
def test_generic_chat_markers_are_broken(marker):
    broken = break_control_tokens(f"hi {marker} there")
    assert marker not in broken
    assert broken.replace(" ", "") == f"hi{marker}there".replace(" ", "")


def test_ordinary_text_is_left_alone():
    text = "if a < b | c > d [x] <b>bold</b> 3<4"
    assert break_control_tokens(text) == text
    assert break_control_tokens(text, ["<|im_end|>"]) == text


@given(
    st.lists(st.text(alphabet="<>|/ab[] ", min_size=1, max_size=6), max_size=5),
    st.text(alphabet="<>|/ab[] ", max_size=60),
)
def test_no_given_control_token_survives_whatever_it_is(tokens, text):
    broken = break_control_tokens(text, tokens)
    assert not any(token in broken for token in tokens if token.strip())
