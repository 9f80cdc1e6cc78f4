"""What two sets of conversations share: members' names, values, wordings, messages, records, questions with their answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from memory_env.corpus.conversations import Conversation, from_recipe, generate_base, generate_sft, generate_validation
from memory_env.corpus.sets import HELDOUT, PRACTICE_FIRST, PRACTICE_NETWORKS, TRAIN, UNSEEN, VALIDATION_NETWORKS
from memory_env.datafile import DataError

SAMPLE = 1_000
"""Conversations of each curriculum level that stand for the sets without an end, `base` and `sft`."""
SETS = ("train", "heldout", "unseen", "validation", "practice", "practice-<number>", "base", "sft")


@dataclass(frozen=True)
class Traits:
    """What the conversations of a set are made of, each thing once.

    Example: `Traits(names={"Ana"}, values={"tuba"}, templates={"I play the {v}"}, texts={"I play the tuba"},
    contents={"Ana plays the tuba"}, answers={("What does Ana play?", "Ana plays the tuba.")})`.
    """

    names: frozenset[str]
    values: frozenset[str]
    templates: frozenset[str]
    texts: frozenset[str]
    contents: frozenset[str]
    answers: frozenset[tuple[str, str]]


def traits(conversations: Iterable[Conversation]) -> Traits:
    """The traits of a set. Values are those of facts and of traps; the views of a plan (supports, opposes, doubts) are none."""
    found: dict[str, set] = {field.name: set() for field in fields(Traits)}
    for each in conversations:
        plan = each.plan
        found["names"].update(plan.members)
        for event in (event for position in plan.positions for event in position.events):
            kind = plan.facts[event.fact].kind
            found["values"].update(event.values if kind not in ("stance", "join", "leave", "exception") else ())
            found["values"].update(
                (plan.facts[event.fact].subject,) if kind in ("stance", "decision.event", "decision.dish") else ()
            )
            found["contents"].add(event.content)
        found["values"].update(value for trap in plan.traps for value in trap.values)
        said = [utterance for position in plan.positions for utterance in position.messages]
        found["templates"].update(utterance.template for utterance in said)
        found["texts"].update(utterance.content for utterance in said)
        found["answers"].update((question.question, question.answer) for question in each.network.questions)
    return Traits(**{name: frozenset(items) for name, items in found.items()})


def shares(one: Traits, other: Traits) -> dict[str, float]:
    """Of each trait, the share of `one`'s that `other` has too, from 0 to 1 (0 where `one` has none)."""
    pairs = {field.name: (getattr(one, field.name), getattr(other, field.name)) for field in fields(Traits)}
    return {name: len(mine & theirs) / len(mine) if mine else 0.0 for name, (mine, theirs) in pairs.items()}


def named_set(name: str) -> Iterator[Conversation]:
    """The conversations of a set by its name (`SETS`); DataError for another name."""
    frozen = {"train": TRAIN, "heldout": HELDOUT, "unseen": UNSEEN}
    kind, _, number = name.partition("-")
    if name in frozen:
        return map(from_recipe, frozen[name])
    if name == "validation":
        return map(generate_validation, range(VALIDATION_NETWORKS))
    if kind == "practice" and (not number or number.isdecimal() and 0 < int(number) <= PRACTICE_NETWORKS):
        return map(generate_validation, range(PRACTICE_FIRST, PRACTICE_FIRST + int(number or PRACTICE_NETWORKS)))
    if name in ("base", "sft"):
        generate = generate_base if name == "base" else generate_sft
        return (generate(seed, level) for level in range(3) for seed in range(SAMPLE))
    raise DataError(f"{name}: no set of the embedded corpus; there are {', '.join(SETS)}")
