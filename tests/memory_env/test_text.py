import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.text import break_control_tokens, normalised_content, one_line, words

MARKERS = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<s>", "</s>",
    "<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "<\uff5cUser\uff5c>", "<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<think>", "</think>",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("  Alice\tOWNS\n\nit. ", "alice owns it"),
        ("Ｌｉｋｅｓ　ｔｅａ！", "likes tea"),  # full width
        ("Cafe\u0301, Ünal’s", "CAFÉ ünal's"),  # composed or not, any apostrophe
        ("喜欢，茶。", "喜欢 茶"),
        ("Привет — МИР…", "привет мир"),
        ("يحب الشاي؟", "يحب الشاي"),
        ("ﾃﾆｽ", "テニス"),  # half-width kana
        ("x² ①", "x2 1"),
        ("\u200bzero\u00a0width\ufeff", "zero width"),
        ("!! 👍\n👍", " !!  👍 👍"),
        ("！？", "!?"),
    ],
)
def test_width_case_punctuation_and_space_make_no_new_content(text, same):
    assert normalised_content(text) == normalised_content(same)


@pytest.mark.parametrize(
    ("text", "other"),
    [("likes tea", "likestea"), ("résumé", "resume"), ("чай", "кот"), ("!", "?"), ("👍", "👎"), ("", "👍"), ("1", "１１")],
)
def test_other_words_are_other_content(text, other):
    assert normalised_content(text) != normalised_content(other)


def test_combining_marks_part_words_as_pythons_own_word_class_has_it():
    assert normalised_content("काला") == normalised_content("कीली") == "क ल"  # black, a nail
    assert normalised_content("ป่า") == normalised_content("ป้า") == "ป า"  # a forest, an aunt


@given(st.text() | st.text(alphabet="ΣσςİıIßẞﬁ'.- \u0301\u0345Ǆｶﾞ\u1100\u1161\u0327"))
def test_normalising_again_changes_nothing(text):
    once = normalised_content(text)
    assert normalised_content(once) == once == once.strip()


@given(st.text(min_size=1), st.text(alphabet=" .,;:!?\n\t…–—()[]{}\"«»。、，؟।%&*#@🎉", max_size=5))
def test_punctuation_around_words_makes_no_new_content(text, punctuation):
    word = f"a{text}b"
    assert normalised_content(punctuation + word + punctuation) == normalised_content(word)


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
