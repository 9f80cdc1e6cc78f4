"""Project, Select/Expand and Sufficiency by a language model, through the prompt files of the paper's Table 24."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memory_env.default_prompts import PROMPTS
from memory_env.prompts import PromptTemplate
from memory_env.query.answer.endpoint_client import EndpointClient
from memory_env.query.answer.endpoint_schemas import PROJECT_SCHEMA, SELECT_SCHEMA, SUFFICIENCY_SCHEMA
from memory_env.query.evidence_text import numbered, safe
from memory_env.query.mentions import find_mentions
from memory_env.query.protocol import Projection
from memory_env.query.retrieve.system1 import Candidate
from memory_env.records import GROUP, Record


class _Prompted:
    def __init__(self, client: EndpointClient, prompt: str | Path):
        self._client, self._template = client, PromptTemplate.load(prompt)

    @property
    def name(self) -> str:
        return f"endpoint:{self._client.settings.model}:{self._template.sha256[:16]}"


class PromptedProjector(_Prompted):
    """Project by a model; it sees the question and the roster only."""

    def __init__(self, client: EndpointClient, prompt: str | Path = PROMPTS / "project.jinja"):
        super().__init__(client, prompt)

    def project(self, question: str, roster: tuple[str, ...]) -> Projection:
        names = tuple(dict.fromkeys(mention.name for mention in find_mentions(question, roster)))

        def accept(body: dict[str, Any]) -> Projection:
            issue, rows, mode = body.get("issue"), body.get("rows"), body.get("tense", "head")
            if not isinstance(issue, str) or mode not in ("head", "full") or not isinstance(rows, (list, str)):
                raise ValueError("a projection has a text `issue`, a list `rows`, and `tense` head or full")
            wanted = [rows] if isinstance(rows, str) else [str(row) for row in rows]
            unknown = [row for row in wanted if row not in (*roster, GROUP, "ALL")]
            if unknown or not wanted:
                raise ValueError(f"`rows` names {unknown[0] if unknown else 'nobody'}, who is not a member, ALL or GROUP")
            expanded = [name for row in wanted for name in (roster if row == "ALL" else (row,))]
            source, owner = (str(body.get(part) or "") for part in ("source", "owner"))
            if source not in roster or owner not in (*roster, GROUP):
                source = owner = ""
            scope = "ALL" if "ALL" in wanted else "GROUP" if wanted == [GROUP] else "names"
            return Projection(issue, tuple(dict.fromkeys(expanded)), mode, source, owner, scope, names)

        values = {"question": safe(question), "roster": [safe(name) for name in roster]}
        return self._client.complete("project", self._template.fill(values), accept, schema=PROJECT_SCHEMA)


class PromptedSelector(_Prompted):
    """Select and Expand by a model. Candidates it does not rank follow in recall order."""

    def __init__(self, client: EndpointClient, prompt: str | Path = PROMPTS / "select.jinja"):
        super().__init__(client, prompt)

    def select(self, question: str, candidates: Sequence[Candidate], k: int, anchors: int) -> tuple[list[int], list[int]]:
        if not candidates:
            return [], []

        def accept(body: dict[str, Any]) -> tuple[list[int], list[int]]:
            return _places(body.get("ranking"), len(candidates)), _places(body.get("expand", []), len(candidates))[:anchors]

        values = {
            "question": safe(question),
            "messages": numbered([found.record for found in candidates]),
            "k": k,
            "anchors": anchors,
        }
        ranked, expand = self._client.complete("select", self._template.fill(values), accept, schema=SELECT_SCHEMA)
        rest = sorted(set(range(len(candidates))) - set(ranked), key=lambda place: (-candidates[place].score, place))
        return ranked + rest, expand


class PromptedSufficiency(_Prompted):
    """Sufficiency/ASK by a model."""

    def __init__(self, client: EndpointClient, prompt: str | Path = PROMPTS / "sufficiency.jinja"):
        super().__init__(client, prompt)

    def ask(self, question: str, messages: Sequence[Record]) -> str:
        def accept(body: dict[str, Any]) -> str:
            enough, term = body.get("enough"), body.get("ask") or ""
            if not isinstance(enough, bool) or not isinstance(term, str):
                raise ValueError("`enough` is true or false and `ask` a text")
            return "" if enough else term.strip()

        values = {"question": safe(question), "messages": numbered(messages)}
        return self._client.complete("sufficiency", self._template.fill(values), accept, schema=SUFFICIENCY_SCHEMA)


def _places(numbers: Any, count: int) -> list[int]:
    """Places from the numbers 1..count a model wrote; others and repetitions are dropped. ValueError for anything but a list."""
    if not isinstance(numbers, list):
        raise ValueError("`ranking` and `expand` are lists of message numbers")
    found = [
        number - 1 for number in numbers if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= count
    ]
    return list(dict.fromkeys(found))
