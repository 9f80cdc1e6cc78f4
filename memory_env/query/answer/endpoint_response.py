"""What a chat completion says: its text, and the JSON objects in it. Every field is checked before it is used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from memory_env.query.answer.endpoint_errors import Failure, failure_inside, first_line, reason_of

_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning|reflection)>.*?</\1>", re.DOTALL | re.IGNORECASE)
# A chat template may have opened the thought itself, so that only its end is in the text.
_THOUGHT_END = re.compile(r"^.*</(?:think|thinking|thought|reasoning|reflection)>", re.DOTALL | re.IGNORECASE)
_FINAL_CHANNEL = re.compile(r"^.*<\|channel\|>final<\|message\|>", re.DOTALL)
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n?(?P<body>.*?)```", re.DOTALL)
_MOST_STARTS = 200


class Unusable(Exception):
    """A response that can't be used as it is; asking again may help. `truncated`: it hit its token limit."""

    def __init__(self, reason: str, truncated: bool = False):
        super().__init__(reason)
        self.truncated = truncated


class Refused(Exception):
    """The model declined to answer."""


class Failed(Exception):
    """An error in a response of status 200."""

    def __init__(self, failure: Failure):
        super().__init__(str(failure))
        self.failure = failure


def completion_text_of(response: Any) -> tuple[str, str]:
    """(text, finish reason) of a response's first choice. Raises Unusable, Refused or Failed."""
    inside = failure_inside(getattr(response, "error", None))
    if inside:
        raise Failed(inside)
    if isinstance(response, str | bytes):
        begins = first_line(str(response))[:80]
        raise Unusable(f"the server did not answer with JSON but with {begins!r}: is it an OpenAI-compatible URL?")
    choices = getattr(response, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise Unusable(f"the response has no choices{_said(response)}")
    choice = choices[0]
    inside = failure_inside(getattr(choice, "error", None))
    if inside:
        raise Failed(inside)
    message, finish = getattr(choice, "message", None), getattr(choice, "finish_reason", None) or ""
    refusal = getattr(message, "refusal", None)
    if refusal or finish == "content_filter":
        raise Refused(f"the model refused: {first_line(str(refusal or 'content filter'))}")
    if message is None:
        raise Unusable("the response's message is null")
    return _text_of(getattr(message, "content", None)), str(finish)


def _text_of(content: Any) -> str:
    """The text of a message's content: a string, or parts of which thoughts are left out."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise Unusable(f"the message's content is {type(content).__name__}, neither text nor a list of parts")
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
            continue
        kind, text = _field(part, "type"), _field(part, "text")
        if kind == "refusal":
            raise Refused(f"the model refused: {first_line(str(_field(part, 'refusal') or text or 'no reason'))}")
        if kind in (None, "text", "output_text") and isinstance(text, str):
            texts.append(text)
    return "".join(texts)


def _field(part: Any, name: str) -> Any:
    return part.get(name) if isinstance(part, dict) else getattr(part, name, None)


def _said(response: Any) -> str:
    extra = getattr(response, "model_extra", None) or {}
    words = reason_of({name: value for name, value in extra.items() if name in ("detail", "message", "msg") and value})
    return f": {words}" if words not in ("", "{}") else ""


def without_thoughts(text: str) -> str:
    """A model's text without what it thought aloud. Example: without_thoughts("<think>hm</think> yes") == "yes"."""
    text = _THOUGHT.sub("", text)
    text = _FINAL_CHANNEL.sub("", _THOUGHT_END.sub("", text))
    return text.strip()


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects a text holds, the likeliest first: the whole text, fenced blocks and objects in prose, each from the last.

    Example: list(json_objects('Sure:\\n```json\\n{"a": 1}\\n```'))[0] == {"a": 1}.
    """
    said = without_thoughts(text)
    fenced = [match["body"] for match in _FENCE.finditer(said)]
    for part in dict.fromkeys((text.strip(), said, *reversed(fenced))):
        try:
            found = json.loads(part, strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found
    yield from reversed(_objects_in_prose(said))


def _objects_in_prose(text: str) -> list[dict[str, Any]]:
    decoder, found, place = json.JSONDecoder(strict=False), [], 0
    for _ in range(_MOST_STARTS):
        place = text.find("{", place)
        if place < 0:
            break
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place += 1
            continue
        found.append(value)
    return found
