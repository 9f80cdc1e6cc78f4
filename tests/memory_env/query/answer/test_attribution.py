"""Nobody's words in another's mouth: the traps of attribution_traps*.yaml, for the offline reader and for a model's prompt."""

import json
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

from memory_env.default_prompts import PROMPTS
from memory_env.ingest import ChatMessage
from memory_env.prompts import PromptTemplate
from memory_env.query.answer.reader import NOT_RECORDED
from memory_env.query.evidence_text import evidence_values, safe
from memory_env.query.living import LivingRetrieval
from memory_env.replay import Completion
from writer_rl import Memory

FILES = [Path(__file__).parents[1] / name for name in ("attribution_traps.yaml", "attribution_traps_indirect.yaml")]
TRAPS = [trap for file in FILES for trap in yaml.safe_load(file.read_text(encoding="utf-8"))]
ASKED = [(place, question) for place, trap in enumerate(TRAPS) for question in trap["ask"]]


class Scripted:
    """A Writer that writes the records it was given, at the last message."""

    identity = "scripted"

    def __init__(self, records):
        self.records = records

    def write(self, state, segment, network_id=""):
        actions = [
            {"action": "ADD", "owner": owner, "source": source, "content": text, "utype": "fact",
             "layer": "group_insight" if owner == "GROUP" else "per_speaker_core"}
            for owner, source, text in self.records
        ]  # fmt: skip
        return Completion(json.dumps({"actions": actions or [{"action": "NOOP"}]}))

    def close(self):
        pass


def messages_of(trap):
    split = [line.split(": ", 1) for line in trap["chat"]]
    return [ChatMessage(speaker, text, f"2025-03-01T10:{minute:02d}:00") for minute, (speaker, text) in enumerate(split)]


@pytest.fixture(scope="module")
def memories(tmp_path_factory):
    made = []
    for place, trap in enumerate(TRAPS):
        memory = Memory(tmp_path_factory.mktemp("traps") / f"{place}.db", Scripted(trap.get("records", ())), retrieval="lexical")
        memory.remember(messages_of(trap))
        made.append(memory)
    yield made
    for memory in made:
        memory.close()


def flat(text):
    return " ".join(text.split())


def true_lines(trap):
    """Every line that an answer may hold without lying about who said it."""
    spoken = [(message.speaker, flat(message.content)) for message in messages_of(trap)]
    lines = {f"{speaker}: {text}" for speaker, text in spoken}
    for first, (speaker, _) in enumerate(spoken):  # a split turn
        own = [text for _, text in takewhile(lambda each, who=speaker: each[0] == who, spoken[first:])]
        lines |= {f"{speaker}: {' '.join(own[:pieces])}" for pieces in range(2, len(own) + 1)}
    for owner, source, text in trap.get("records", ()):
        lines.add(f"{owner}: {text}" if owner == source else f"{owner}: {text} (said by {source})")
    return lines


def lines_of(answer):
    return [line.rsplit(" (about ", 1)[0] for line in answer.splitlines() if not line.endswith(NOT_RECORDED)]


@pytest.mark.parametrize(("place", "question"), ASKED)
def test_no_answer_puts_words_in_the_wrong_mouth(memories, place, question):
    trap, answer = TRAPS[place], memories[place].ask(question).text
    assert answer.strip()
    assert [line for line in lines_of(answer) if line not in true_lines(trap)] == []
    if not trap["ask"][question]:
        assert lines_of(answer) == [], "another's words, taken for an answer"


def test_at_least_four_of_five_that_can_be_answered_are_answered_right(memories):
    asked = [(place, question) for place, question in ASKED if TRAPS[place]["ask"][question]]
    missed = []
    for place, question in asked:
        answer = memories[place].ask(question).text.splitlines()
        wanted = TRAPS[place]["ask"][question]
        found = [any(line.startswith(each) for line in answer) for each in wanted]
        extra = [line for line in answer if not any(line.startswith(each) for each in wanted) and not line.endswith(NOT_RECORDED)]
        if not all(found) or extra:
            missed.append((question, answer))
    assert len(ASKED) >= 160
    assert len(missed) <= 0.2 * len(asked), missed


@pytest.mark.parametrize("place", range(len(TRAPS)))
def test_a_models_prompt_gives_every_statement_its_true_speaker(memories, place):
    """Line by line of the composed evidence: a message under its speaker, a record with its source."""
    trap = TRAPS[place]
    speaker_of = {safe(message.content): safe(message.speaker) for message in messages_of(trap)}
    source_of = {safe(text): safe(source) for _, source, text in trap.get("records", ())}
    retrieval = LivingRetrieval(memories[place].store, "lexical")
    template = PromptTemplate.load(PROMPTS / "answer_memory.jinja")
    for question in trap["ask"]:
        evidence = retrieval.evidence(question)
        prompt = template.fill(evidence_values(evidence) | {"question": question, "options": {}})[-1]["content"]
        shown = prompt.split("## Question")[0].splitlines()
        for line in (line for line in shown if line.startswith("- ") and " @ " in line):
            told = line[2:].removeprefix("message: ")
            speaker, text = told.split(" @ ", 1)
            assert speaker_of[text.split(": ", 1)[1]] == speaker
        for text, source in source_of.items():
            for line in (line for line in shown if line.startswith(f"- {text} (")):
                assert f"(source {source}," in line
        assert all(item.source for row in evidence.rows for chain in row.chains for item in chain)
