"""What counts as a token of a record's content (T(c) of Eq. 13)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

Tokenizer = Callable[[str], list[str]]

_SPANS = re.compile(r"[a-z0-9]+")
_CJK = re.compile("[\u3400-\u9fff]")

# Scripts written without spaces between words: there each character is a token, as Han is in the paper's rule.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # kana
    (0x31F0, 0x31FF),  # kana extensions
    (0x3400, 0x9FFF),  # Han
    (0xF900, 0xFAFF),  # Han, compatibility forms
    (0x20000, 0x3FFFF),  # Han, extensions
)


def paper_tokens(text: str) -> list[str]:
    """The paper's rule: lowercase; every `[a-z0-9]+` span, then every character of U+3400-U+9FFF.

    Example: paper_tokens("Bob 喜欢 tea") == ["bob", "tea", "喜", "欢"].
    """
    text = text.lower()
    return _SPANS.findall(text) + _CJK.findall(text)


def unicode_tokens(text: str) -> list[str]:
    """Letters and digits of every script: words first, then single characters of scripts without word spaces.

    Compatibility forms are folded (NFKC), marks stay with their letter. On text of ASCII letters, digits and
    Han it gives what `paper_tokens` gives. Example: unicode_tokens("Зоя любит café") == ["зоя", "любит", "café"].
    """
    words: list[str] = []
    singles: list[str] = []
    word = ""
    target: list[str] | None = None
    for character in unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower()):
        kind = _kind(character)
        if kind == "mark":
            if target is singles:
                singles[-1] += character
            elif target is words:
                word += character
            continue
        if kind == "letter":
            word += character
            target = words
            continue
        if word:
            words.append(word)
            word = ""
        target = None
        if kind == "single":
            singles.append(character)
            target = singles
    if word:
        words.append(word)
    return words + singles


@lru_cache(maxsize=65_536)
def _kind(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] == "M":
        return "mark"
    if category[0] not in "LN":
        return "other"
    code = ord(character)
    return "single" if any(low <= code <= high for low, high in _UNSPACED) else "letter"


TOKENIZERS: dict[str, Tokenizer] = {"paper": paper_tokens, "unicode": unicode_tokens}


def tokenizer(name: str) -> Tokenizer:
    """The tokenizer called `name`; ValueError names the two there are."""
    try:
        return TOKENIZERS[name]
    except (KeyError, TypeError):
        raise UnknownTokenizer(f"tokenizer: {name!r} is not one of {', '.join(TOKENIZERS)}") from None


class UnknownTokenizer(ValueError):
    """A tokenizer name that is neither `paper` nor `unicode`."""


def unseen_text_share(texts: str | Iterable[str]) -> float:
    """Share of the letters and digits in `texts` that the paper's rule cannot see, in [0, 1]; 0 without any.

    Data loading warns with it: at 1.0 every similarity under the paper's rule is 0.
    Example: unseen_text_share("café") == 0.25; unseen_text_share(["Привет", "ok"]) == 0.75.
    """
    total = unseen = 0
    for text in [texts] if isinstance(texts, str) else texts:
        for character in unicodedata.normalize("NFC", text.lower()):
            if unicodedata.category(character)[0] in "LN":
                total += 1
                unseen += not (_SPANS.match(character) or _CJK.match(character))
    return unseen / total if total else 0.0
