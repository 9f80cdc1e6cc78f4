"""The JSON schemas of the responses, for servers that take a schema instead of asking for any JSON object."""

from __future__ import annotations

from typing import Any

_TEXT, _FLAG = {"type": "string"}, {"type": "boolean"}
_NUMBERS = {"type": "array", "items": {"type": "integer"}}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


ANSWER_SCHEMA = _object(answer=_TEXT)
OPTION_SCHEMA = _object(answer=_TEXT, option=_TEXT)
JUDGE_SCHEMA = _object(correct=_FLAG, score={"type": "number"}, reason=_TEXT)
PROJECT_SCHEMA = _object(
    issue=_TEXT, rows={"type": "array", "items": _TEXT}, tense={"enum": ["head", "full"]}, source=_TEXT, owner=_TEXT
)
SELECT_SCHEMA = _object(ranking=_NUMBERS, expand=_NUMBERS)
SUFFICIENCY_SCHEMA = _object(enough=_FLAG, ask=_TEXT)
