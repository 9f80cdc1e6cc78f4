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
    """16 hexadecimal digits over the code of modules of `memory_env.query`, each named by its last part.

    Only what runs counts: no comments, docstrings, white space or imports, so that moving a file changes nothing.
    """
    digest = hashlib.sha256()
    for module in sorted(modules):
        (file,) = Path(__file__).parent.rglob(f"{module}.py")
        digest.update(f"{module}\n{significant(file.read_text(encoding='utf-8'))}\n".encode())
    return digest.hexdigest()[:16]


def significant(source: str) -> str:
    """The tokens of Python code without comments, docstrings, imports and white space."""
    kept: list[str] = []
    starts_statement, importing = True, False
    for each in tokenize.generate_tokens(io.StringIO(source).readline):
        if each.type in _LAYOUT:
            starts_statement = starts_statement or each.type == token.NEWLINE
            importing = importing and each.type != token.NEWLINE
            continue
        importing = importing or (starts_statement and each.string in ("import", "from"))
        if importing:
            starts_statement = False
            continue
        if not (starts_statement and each.type == token.STRING):
            kept.append(each.string)
        starts_statement = False
    return "".join("".join(kept).split())
