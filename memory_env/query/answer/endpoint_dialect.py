"""What one server's chat completions accept: a parameter it refuses is renamed, lowered or left out, and that is remembered.

OpenAI-compatible servers differ: reasoning models refuse `max_tokens` and `temperature`, local ones `response_format`, some a
system message. A server says so with a 400 or 422 that names the parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_REFUSES = re.compile(
    r"unsupported|not supported|n[o']t support|unrecogni[sz]ed|unknown|unexpected|extra (?:inputs|fields)|not permitted"
    r"|not allowed|not accept|invalid|must be|only the default|deprecated|instead|not available|no longer|unavailable"
    r"|too (?:large|high)|cannot be used",
    re.IGNORECASE,
)
# A prompt that is too long is the request's fault, whatever parameters the server names beside it.
_TOO_LONG = re.compile(
    r"context (?:length|window|size)|too (?:long|many tokens)|prompt (?:is )?too|reduce the length", re.IGNORECASE
)
_AT_MOST = re.compile(r"(?:at most|maximum(?: value)?(?: of| is|:)?|less than or equal to|<=|up to)\s*(\d{2,7})", re.IGNORECASE)
_STATUS = frozenset({400, 404, 415, 422, 500, 501})
_FORMATS = ("json_object", "json_schema", "none")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How requests are put to a server.

    `tokens`: the name of the output limit, "" for none; `most_tokens`: the largest limit it takes, 0 for any. `temperature`,
    `system`, `extra`: whether it takes a temperature, a system message, and parameters beside OpenAI's. `format`: how JSON is
    asked for: "json_object", "json_schema" or "none".

    Example:
        Dialect().without("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        == Dialect(tokens="max_completion_tokens")
    """

    tokens: str = "max_tokens"
    most_tokens: int = 0
    temperature: bool = True
    system: bool = True
    extra: bool = True
    format: str = "json_object"

    def request(
        self,
        messages: Sequence[Mapping[str, str]],
        max_tokens: int,
        as_json: bool = False,
        schema: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The keyword arguments of a greedy chat completion; `extra` are fields that OpenAI's own API does not have."""
        fields: dict[str, Any] = {"messages": self._messages(messages)}
        if self.tokens:
            fields[self.tokens] = min(max_tokens, self.most_tokens) if self.most_tokens else max_tokens
        if self.temperature:
            fields["temperature"] = 0
        if as_json and self.format == "json_object":
            fields["response_format"] = {"type": "json_object"}
        elif as_json and self.format == "json_schema":
            named = {"name": "response", "schema": dict(schema or {"type": "object"})}
            fields["response_format"] = {"type": "json_schema", "json_schema": named}
        if extra and self.extra:
            fields["extra_body"] = dict(extra)
        return fields

    def _messages(self, messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
        if self.system:
            return [dict(message) for message in messages]
        told = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
        rest = [dict(message) for message in messages if message["role"] != "system"]
        if told and rest:
            rest[0]["content"] = f"{told}\n\n{rest[0]['content']}"
        return rest or [{"role": "user", "content": told}]

    def without(self, reason: str, status: int = 400) -> Dialect | None:
        """The dialect without the parameter that a server's `reason` refuses; None if it refuses none that can be changed."""
        if status not in _STATUS or not _REFUSES.search(reason):
            return None
        said = reason.lower()
        changes = (self._other_format, self._other_limit, self._no_temperature, self._no_extra, self._no_system)
        return next((other for change in changes if (other := change(said)) is not None), None)

    def _other_format(self, said: str) -> Dialect | None:
        if not re.search(r"\bresponse_format|json_object|json_schema|json mode|structured output", said):
            return None
        place = _FORMATS.index(self.format)
        if self.format == "json_object" and "json_schema" not in said:
            place += 1  # a server that does not speak of schemas is asked in words alone
        return replace(self, format=_FORMATS[place + 1]) if place + 1 < len(_FORMATS) else None

    def _other_limit(self, said: str) -> Dialect | None:
        if not re.search(r"max_(?:completion_)?tokens", said) or _TOO_LONG.search(said):
            return None
        most = _AT_MOST.search(said)
        if most and int(most[1]) > 0 and (not self.most_tokens or int(most[1]) < self.most_tokens):
            return replace(self, most_tokens=int(most[1]))
        if self.tokens == "max_tokens":
            return replace(self, tokens="max_completion_tokens")
        # Asked for by the second name and refused again: the server's own limit has to do.
        return replace(self, tokens="") if self.tokens else None

    def _no_temperature(self, said: str) -> Dialect | None:
        return replace(self, temperature=False) if self.temperature and "temperature" in said else None

    def _no_extra(self, said: str) -> Dialect | None:
        return replace(self, extra=False) if self.extra and "skip_special_tokens" in said else None

    def _no_system(self, said: str) -> Dialect | None:
        named = re.search(r"\bsystem\b.{0,40}\b(?:role|message|prompt|instruction)|role.{0,40}\bsystem\b", said)
        return replace(self, system=False) if self.system and named else None
