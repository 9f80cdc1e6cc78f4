"""One self-contained HTML page: template, style and script from this package, data as JSON that no text can break out of.

Every page forbids the browser to load or send anything (Content-Security-Policy), and to run any script but its own, by hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from memory_env.text import json_utf8


def render(template: str, scripts: Sequence[str], styles: Sequence[str], values: Mapping[str, Any]) -> str:
    """The page of `template` with the named scripts and styles inside it.

    In the template, `json(value) | safe` is a value for a `<script type="application/json">`; everything else is escaped as text.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(asset), trim_blocks=True)
    script = "".join(f"\n{asset(name)}" for name in scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    return environment.get_template(template).render(
        **values,
        json=embedded,
        policy=policy,
        script=script,
        style="".join(f"\n{asset(name)}" for name in styles),
    )


@cache
def asset(name: str) -> str:
    """A file of `writer_rl/report/assets`."""
    return resources.files("writer_rl.report").joinpath("assets", name).read_text(encoding="utf-8")


def embedded(value: object) -> str:
    """JSON for the inside of a script element: <, > and & are escapes, so that no text ends the element or begins a comment.

    Half a surrogate pair stays the escape that JSON has for it.
    """
    text = json_utf8(value, separators=(",", ":")).decode("utf-8")
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
