"""Text as data: normalisation, lexical similarity, and the escapes that keep a message from posing as anything else."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

# Ideographs, kana and hangul stand for themselves: those scripts put no space between words.
_SINGLE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")  # the same on ASCII text, twice as fast

# What chat templates use to mark turns, in the spellings of the common model families.
_GENERIC_CONTROL = re.compile(
    r"<[|\uff5c]|[|\uff5c]>|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|<</?SYS>>"
    r"|</?(?:s|bos|eos|unk|pad|mask|start_of_turn|end_of_turn|think|tool_call|tool_response)>",
    re.IGNORECASE,
)


_NO_WORD = re.compile(r"\W+")


@lru_cache(maxsize=65_536)
def normalised_content(text: str) -> str:
    """What "same content" means to actions and rewards: width, case, punctuation and spaces make no new content.

    Unicode NFKC, lower case, every run of characters outside Python's `\\w` as one space, none outside. A text without
    a word character (an emoji, "?!") keeps its signs, runs of whitespace as one space. Normalising again changes nothing.

    Python's `\\w` has no combining marks: accents that NFKC composes stay, but vowel signs of Devanagari, Thai and
    the like count as separators, so that there two words that differ in them alone are one content.

    Example: normalised_content("  Ｌikes TEA – a lot! ") == "likes tea a lot"; normalised_content("?  !") == "? !".
    """
    folded = unicodedata.normalize("NFKC", text).lower()
    return _NO_WORD.sub(" ", folded).strip() or " ".join(folded.split())


def words(text: str) -> list[str]:
    """Words of `text` in order: lower case, every script; one per ideograph, kana or hangul syllable."""
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text.lower())


@lru_cache(maxsize=32_768)
def word_counts(text: str) -> Mapping[str, int]:
    """`words(text)` with their counts. Callers share the returned mapping and must not change it."""
    return Counter(words(text))


def squared_norm(counts: Mapping[str, int]) -> int:
    """Squared Euclidean length of a count vector."""
    return sum(count * count for count in counts.values())


def json_utf8(value: object, **layout: Any) -> bytes:
    """A JSON text that people can read, as UTF-8; half a surrogate pair, which UTF-8 has not, stays an escape.

    Example: json_utf8(["好", "\\ud83d"]) == '["好", "\\\\ud83d"]'.encode().
    """
    return json.dumps(value, ensure_ascii=False, **layout).encode("utf-8", "backslashreplace")


def _escaped(char: str) -> str:
    if char in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": " "}[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class _Escapes(dict):
    """Code point -> what stands for it on a line, filled on demand for `str.translate`."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        category = unicodedata.category(char)
        # The joiners U+200C and U+200D shape legitimate words and emoji.
        hidden = category in ("Cc", "Cs", "Zl", "Zp", "Co") or (category == "Cf" and char not in "\u200c\u200d")
        self[code] = _escaped(char) if hidden else char
        return self[code]


_ESCAPES = _Escapes()


def one_line(text: str) -> str:
    """`text` on one line: line breaks, control and invisible format characters and lone surrogates become escapes."""
    return text if text.isprintable() else text.translate(_ESCAPES)


def _split_token(match: re.Match[str]) -> str:
    token = match.group()
    return f"{token[0]} {token[1:]}" if len(token) > 1 else _escaped(token)


@lru_cache(maxsize=64)
def _control_pattern(tokens: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(token) for token in sorted(tokens, key=lambda token: (-len(token), token))))


def break_control_tokens(text: str, control_tokens: Iterable[str] = ()) -> str:
    """`text` with a space put into every chat-template marker, so that no tokenizer reads it as one.

    The generic markers (`<|...|>`, `[INST]`, `</s>`, ...) are always broken; `control_tokens` are the special tokens
    of the tokenizer in use.
    """
    text = _GENERIC_CONTROL.sub(_split_token, text)
    tokens = tuple(token for token in control_tokens if token.strip())
    if not tokens:
        return text
    pattern = _control_pattern(tokens)
    for _ in range(4):
        if not pattern.search(text):
            return text
        text = pattern.sub(_split_token, text)
    while pattern.search(text):  # tokens that re-form around a space lose their first character
        text = pattern.sub(lambda match: match.group()[1:], text)
    return text
