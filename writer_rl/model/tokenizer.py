"""The tiny Writer's tokenizer: the fixed pieces of an action and the words of sentences are one token each, all else is spelt.

Names and values are spelt in groups of two or three letters, whatever they are, so a Writer that has learnt to copy them can copy
ones it has never seen. What no letter group fits is read and written byte by byte: any text survives ``decode(encode(text))``.
Nothing is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from memory_env.records import DERIVED_LAYERS, DERIVED_UTYPES, GROUP
from rollout.tokenizer_file import AS_WRITTEN

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, END, USER, WRITER = "<|pad|>", "<|end|>", "<|user|>", "<|writer|>"
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message.role == 'user' -%}{{ '<|user|>' + message.content + '\\n' }}"
    "{%- elif message.role == 'assistant' -%}{{ '<|writer|>' + message.content + '<|end|>' }}"
    "{%- else -%}{{ raise_exception('the tiny Writer knows the roles user and assistant only') }}"
    "{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|writer|>' }}{%- endif -%}"
)
CONTEXT = 2048
"""Tokens of prompt and completion together."""

PROMPT_PIECES = ("---\n",)
PROMPT_WORDS = (GROUP, "'s", *(layer.rsplit("_", 1)[-1] for layer in DERIVED_LAYERS))
"""What `configs/prompts/tiny_writer.jinja` writes beside data."""

_ADD = '{"action":"ADD","owner":"'
_UPDATE = '{"action":"UPDATE","content":"'
_NOOP = '{"action":"NOOP"}'
LONGEST = 16
_HEX_PAIR = "[0-9a-f]{2}"


def action_pieces() -> tuple[str, ...]:
    """The fixed pieces of a completion in compact JSON, each one token.

    Example: `{"actions":[{"action":"ADD","owner":"` + `Ana` + `","source":"` + ... + `"}]}` costs 4 tokens beside its values.
    """
    opening = '{"actions":['
    return (
        *(opening + action for action in (_ADD, _UPDATE, _NOOP + "]}")),
        *('"},' + action for action in (_ADD, _UPDATE)),
        '"}]}',
        '","source":"',
        '","entry_id":"',
        *(f'","layer":"{layer}","utype":"{utype}","content":"' for layer in DERIVED_LAYERS for utype in DERIVED_UTYPES),
    )


def build_tokenizer(words: Iterable[str], letter_groups: Iterable[str] = ()) -> PreTrainedTokenizerFast:
    """A tokenizer whose vocabulary is bytes, pairs of hexadecimal digits (entry ids), action pieces, `words` and `letter_groups`.

    words: as they are written. A capitalised word or a punctuation mark is a token of its own, so that a name is the same token
    at the start of a line, in a sentence and in JSON; a word in small letters is one token with the space before it.
    letter_groups: what other words are spelt with, the longest group that fits first; each begins a word in small letters (with
    the space before it), begins a capitalised word, or goes on. Same words and groups, same tokenizer, whatever their order.
    """
    from transformers import PreTrainedTokenizerFast

    pretokenizer = _pretokenizer()
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    pieces = [_spelling(byte_level, piece) for piece in (*action_pieces(), *PROMPT_PIECES)]
    spaced = map(_as_in_a_sentence, sorted({*words, *PROMPT_WORDS}))
    known = [token for word in spaced for token, _ in pretokenizer.pre_tokenize_str(word)]
    groups = sorted(set(letter_groups))
    spelling = [_spelling(byte_level, form) for group in groups for form in (group, f" {group}", group.capitalize())]
    alphabet = (*sorted(pre_tokenizers.ByteLevel.alphabet()), *(f"{i:02x}" for i in range(256)))
    tokens = [PAD, END, USER, WRITER, *alphabet, *pieces, *known, *spelling]
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    # The longest token that fits, from the left; with every byte in the vocabulary one always does, and nothing is unknown.
    tokenizer = Tokenizer(models.WordPiece(vocabulary, max_input_chars_per_word=1_000, continuing_subword_prefix=""))
    tokenizer.pre_tokenizer = pretokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in (PAD, END, USER, WRITER)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[USER, WRITER],
        chat_template=CHAT_TEMPLATE,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
        auto_map=AS_WRITTEN,
    )


def actions_json(actions: Sequence[object]) -> str:
    """Actions as the compact JSON that the Writer is taught to write.

    >>> actions_json([{"action": "NOOP"}])
    '{"actions":[{"action":"NOOP"}]}'
    """
    return json.dumps({"actions": actions}, separators=(",", ":"), ensure_ascii=False)


def _as_in_a_sentence(word: str) -> str:
    """With the space before it, unless its token has none: capitalised words and 's."""
    stands_alone = re.match(r"[^\W\d_]{2}|'", word) and not word[0].islower()
    return word if stands_alone else f" {word}"


def _spelling(byte_level: pre_tokenizers.ByteLevel, piece: str) -> str:
    return "".join(token for token, _ in byte_level.pre_tokenize_str(piece))


def _pretokenizer() -> pre_tokenizers.PreTokenizer:
    pieces = "|".join(re.escape(p) for p in sorted((*action_pieces(), *PROMPT_PIECES), key=len, reverse=True))
    entry_id = r"(?<![0-9A-Za-z])[0-9a-f]{8}(?![0-9A-Za-z])"
    # No piece is longer than LONGEST letters: looking for the longest token takes the square of a piece's length.
    most, rest = f"{{1,{LONGEST}}}", f"{{0,{LONGEST - 1}}}"
    words = rf"\p{{Lu}}\p{{L}}{most}| ?\p{{Lu}}(?!\p{{L}})|'\p{{Ll}}{most}| ?\p{{Ll}}\p{{L}}{rest}| ?\p{{Nd}}{most}"
    # An id falls into four pairs: each alternative is one pair by its place in a piece of exactly eight digits.
    places = [f"(?<=\\A{_HEX_PAIR * before}){_HEX_PAIR}(?={_HEX_PAIR * (3 - before)}\\z)" for before in range(4)]
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(rf"{pieces}|{entry_id}|{words}|[\s\S]"), "isolated"),
            pre_tokenizers.Split(Regex("|".join(places)), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
