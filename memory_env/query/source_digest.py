"""A digest of code, so that "frozen" covers rules written in Python as well as prompts."""

from __future__ import annotations

import hashlib
import io
import token
import tokenize
from functools import lru_cache
from pathlib import Path

_LAYOUT = {token.NEWLINE, token.INDENT, token.DEDENT, tokenize.NL, tokenize.COMMENT, tokenize.ENCODING}


@lru_cache(maxsize=64)
def source_digest(*modules: str) -> str:
    """16 hexadecimal digits over the code of modules of this package; comments, docstrings and white space do not count."""
    digest = hashlib.sha256()
    for module in sorted(modules):
        source = (Path(__file__).parent / f"{module}.py").read_text(encoding="utf-8")
        digest.update(f"{module}\n{significant(source)}\n".encode())
    return digest.hexdigest()[:16]


def significant(source: str) -> str:
    """The tokens of Python code without comments, docstrings and white space."""
    kept: list[str] = []
    starts_statement = True
    for each in tokenize.generate_tokens(io.StringIO(source).readline):
        if each.type in _LAYOUT:
            starts_statement = starts_statement or each.type == token.NEWLINE
            continue
        if not (starts_statement and each.type == token.STRING):
            kept.append(each.string)
        starts_statement = False
    return "".join("".join(kept).split())
