"""The corpus for the eye: a list of its networks, one conversation line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from memory_env.corpus.conversations import Conversation, from_recipe
from memory_env.corpus.overlap import named_set, shares, traits
from memory_env.corpus.sets import HELDOUT, TRAIN, UNSEEN


def listing() -> Iterator[str]:
    """One line per frozen network and a total per set."""
    for recipes in (TRAIN, HELDOUT, UNSEEN):
        total = [0, 0, 0]
        for recipe in recipes:
            conversation = from_recipe(recipe)
            network = conversation.network
            sizes = (len(network.messages), len(network.sessions), len(network.questions))
            total = [a + b for a, b in zip(total, sizes, strict=True)]
            yield f"{recipe.name:<16}{sizes[0]:>4} messages {sizes[1]:>2} segments {sizes[2]:>3} questions"
        yield f"{'total':<16}{total[0]:>4} messages {total[1]:>2} segments {total[2]:>3} questions"


def overlap_lines(one: str, other: str) -> Iterator[str]:
    """Per trait: how many the set `one` has, and how many of them occur in the set `other`. DataError for an unknown set."""
    mine, theirs = traits(named_set(one)), traits(named_set(other))
    yield f"{'of ' + one:<10}{'all':>7}{'in ' + other:>16}"
    for name, share in shares(mine, theirs).items():
        count = len(getattr(mine, name))
        yield f"{name:<10}{count:>7}{share:>16.1%}"


def shown(conversation: Conversation, biased: bool = False) -> Iterator[str]:
    """Messages, the teacher's actions below each segment, then the questions with answers and rubrics."""
    network = conversation.network
    taught = conversation.biased(seed=0) if biased else conversation.taught
    for session, actions in zip(network.sessions, taught.actions, strict=True):
        yield f"{session.session_id}  {session.ts}"
        yield from (f"  {turn.speaker}: {turn.content}" for turn in session.turns)
        yield from (f"    -> {json.dumps(action)}" for action in actions)
    for question in network.questions:
        options = question.options if isinstance(question.options, Mapping) else {}
        yield f"{question.category}  {question.question}"
        yield from (f"      {letter}) {text}" for letter, text in options.items())
        letter = f"{question.correct_option}) " if question.correct_option else ""
        yield f"    = {letter}{question.answer}   {json.dumps(question.extra['rubric'])}"
