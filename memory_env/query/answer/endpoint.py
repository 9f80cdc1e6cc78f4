"""Answerer and judge behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_env.default_prompts import PROMPTS
from memory_env.prompts import PromptTemplate
from memory_env.query.answer.endpoint_client import EndpointClient
from memory_env.query.answer.endpoint_schemas import ANSWER_SCHEMA, JUDGE_SCHEMA, OPTION_SCHEMA
from memory_env.query.answer.offline_answer import option_texts
from memory_env.query.evidence_text import evidence_values, safe
from memory_env.query.protocol import Answer, Evidence, Question, Verdict, blind


class EndpointAnswerer:
    """Asks a model to answer from the rendered evidence; it sees no gold answer (`blind`)."""

    def __init__(self, client: EndpointClient, prompt: str | Path = PROMPTS / "answer.jinja"):
        self._client, self._template = client, PromptTemplate.load(prompt)

    @property
    def fingerprint(self) -> Mapping[str, str]:
        return {"answerer": f"endpoint:{self._client.settings.model}", "answer_prompt": self._template.sha256}

    def answer(self, question: Question, evidence: Evidence) -> Answer:
        question = blind(question)
        options = option_texts(question.options)

        def accept(body: dict[str, Any]) -> Answer:
            text = body.get("answer")
            if not isinstance(text, str) or not text.strip():
                raise ValueError("the response has no answer")
            option = str(body.get("option") or "").strip().upper()[:1]
            if options and option not in options:
                raise ValueError(f"the response chooses {option or 'nothing'}, which is not an option")
            return Answer(text.strip(), option if options else "")

        values = evidence_values(evidence) | {
            "question": safe(question.question),
            "options": {letter: safe(text) for letter, text in options.items()},
        }
        schema = OPTION_SCHEMA if options else ANSWER_SCHEMA
        return self._client.complete("answer", self._template.fill(values), accept, question.id, schema)


class EndpointJudge:
    """Asks a model for the binary verdict and the partial score; multiple choice is decided by the exact option (Appendix C)."""

    def __init__(self, client: EndpointClient, prompt: str | Path = PROMPTS / "judge.jinja"):
        self._client, self._template = client, PromptTemplate.load(prompt)

    @property
    def fingerprint(self) -> Mapping[str, str]:
        return {"judge": f"endpoint:{self._client.settings.model}", "judge_prompt": self._template.sha256}

    def judge(self, question: Question, answer: Answer) -> Verdict:
        if option_texts(question.options) and question.correct_option and answer.option:
            right = answer.option == question.correct_option
            return Verdict(right, float(right), f"chose {answer.option}, correct is {question.correct_option}")
        values = {
            "question": safe(question.question),
            "gold": safe(question.answer),
            "answer": safe(answer.text),
        }
        return self._client.complete("judge", self._template.fill(values), _verdict, question.id, JUDGE_SCHEMA)


def _verdict(body: dict[str, Any]) -> Verdict:
    correct, score = body.get("correct"), body.get("score")
    if not isinstance(correct, bool):
        raise ValueError(f"`correct` is {correct!r}, not true or false")
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0 <= score <= 1:
        raise ValueError(f"`score` is {score!r}, not a number from 0 to 1")
    return Verdict(correct, float(score), str(body.get("reason") or ""))
