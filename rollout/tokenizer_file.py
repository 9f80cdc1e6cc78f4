"""Tokenizers that read text as their own tokenizer.json says.

transformers 5 puts Qwen's own pre-tokenizer in place of the file's beside every qwen2 config.json, without a word. A model that
was trained with the file's then sees other tokens than it knows.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)

SAMPLES = (
    '{"actions":[{"action":"ADD","owner":"Ana","source":"Bo","layer":"per_speaker_core","utype":"fact","content":"x"}]}',
    '{"actions":[{"action":"UPDATE","entry_id":"0a1b2c3d","content":"moved to Lyon"},{"action":"NOOP"}]}',
    "Ana: I don't think we'll make it by 10:30 on 2026-11-30...\n\nBo's  answer -- fine;\tOK?! #3\r\n",
    "  McGregor, iPhone14, snake_case, ALLCAPS, e-mail@example.org, https://example.org/a?b=c  ",
    "Zürich naïve Ωmega Привет мир 东京の会議 서울 مرحبا e\u0301 ﬁ ½ 👍🏽",
)
"""Words, digits, white space, punctuation, several scripts: what pre-tokenizers and normalisers treat each in its own way."""

AS_WRITTEN = {"AutoTokenizer": [None, "PreTrainedTokenizerFast"]}
"""An `auto_map` that makes transformers read tokenizer.json as it is; it stands in whatever folder the tokenizer is saved to."""


def load_as_written(source: str) -> Any:
    """The tokenizer of a folder or Hugging Face id, whose tokenizer.json, if it has one, is read as it is written.

    Where transformers reads it otherwise, that is logged, and every folder that the tokenizer is saved to (checkpoints, exports)
    says how it is to be read. Raises what transformers raises.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    tokenizer = AutoTokenizer.from_pretrained(source)
    difference = difference_from_file(tokenizer, Path(source))
    if difference is None:
        return tokenizer
    _log.warning(
        'tokenizer %s: transformers %s; the file is followed here, and elsewhere with "auto_map": {"AutoTokenizer": [null, '
        '"PreTrainedTokenizerFast"]} in its tokenizer_config.json',
        source,
        difference,
    )
    return PreTrainedTokenizerFast.from_pretrained(source, auto_map=AS_WRITTEN)


def difference_from_file(tokenizer: Any, folder: Path) -> str | None:
    """What `tokenizer` reads otherwise than the tokenizer.json in `folder`; None if nothing, or without such a file.

    Example: "reads 'Ana: I don't think we...' as 61 tokens, tokenizer.json as 23"
    """
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.is_file():
        return None
    file = Tokenizer.from_file(str(path))
    file.no_padding()
    file.no_truncation()
    for sample in SAMPLES:
        loaded, said = tokenizer(sample, add_special_tokens=False)["input_ids"], file.encode(sample, add_special_tokens=False).ids
        if list(loaded) != said:
            return f"reads {sample[:22]!r}... as {len(loaded)} tokens, tokenizer.json as {len(said)}"
    return None
