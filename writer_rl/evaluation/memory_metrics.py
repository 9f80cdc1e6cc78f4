"""How good a written memory is, measured against the teacher's reference and the questions' gold values; no answerer, no
judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Protocol

from memory_env import MemoryState, Report
from memory_env.conversation import Question
from memory_env.query.answer.offline_answer import option_texts
from memory_env.query.answer.offline_judge import Item, Rubric, rubric_of
from memory_env.query.retrieve.terms import terms
from memory_env.records import GROUP, Edge, Record
from memory_env.text import normalised_content
from memory_env.trajectory import ReferenceState, TeacherTrajectory
from rewards import Scorer, StepReward, score_step, text_similarity

COMPONENTS = ("json", "schema", "dup", "stop", "valid", "phi_macro", "phi_worst", "phi", "chain", "mem", "penalty")
SAME_CONTENT = 0.9
"""Contents this similar (Eq. 13) say the same; lower, and two values of one attribute would pass for one."""


class MadeStep(Protocol):
    """One position of a written memory: what was done there, and the states around it."""

    @property
    def actions(self) -> Sequence[object]: ...
    @property
    def report(self) -> Report: ...
    @property
    def pre_state(self) -> MemoryState: ...
    @property
    def post_state(self) -> MemoryState: ...


class Written(Protocol):
    """The memory of one network, step by step: a `rollout.Trajectory` or a `WrittenMemory`."""

    @property
    def network_id(self) -> str: ...
    @property
    def steps(self) -> Sequence[MadeStep]: ...


State = MemoryState | ReferenceState


def memory_metrics(
    trajectories: Iterable[Written], references: Mapping[str, TeacherTrajectory], questions: Mapping[str, Sequence[Question]]
) -> dict[str, float]:
    """Means over the written memories of the networks that `references` and `questions` (both by network id) cover.

    Keys: the reward components (means over all steps), `total` (mean local return, without the QA term), `question_score`,
    `update_accuracy`, `attribution_accuracy` (all in [0, 1]; a mean over nothing is left out), and the counts `steps`,
    `questions`, `reference_updates`, `matched_contents`, `records`.

    Raises KeyError for a trajectory without a reference.
    """
    scorer = Scorer()
    rewards: list[StepReward] = []
    answered: list[bool] = []
    updated: list[bool] = []
    attributed: list[bool] = []
    records = steps = 0
    for trajectory in trajectories:
        reference = references[trajectory.network_id].states
        for made, target in zip(trajectory.steps, reference, strict=True):
            rewards.append(score_step(made.actions, made.report, made.pre_state, made.post_state, target, scorer))
        final, target = trajectory.steps[-1].post_state, reference[-1]
        steps += len(trajectory.steps)
        records += len(final.derived())
        answered.extend(answer_stands(question, final) for question in questions.get(trajectory.network_id, ()))
        updated.extend(update_hits(final, target))
        attributed.extend(attribution_hits(final, target))
    means = {name: [getattr(reward, name) for reward in rewards] for name in COMPONENTS}
    means["total"] = [reward.total() for reward in rewards]
    means |= {"question_score": answered, "update_accuracy": updated, "attribution_accuracy": attributed}
    counts = {
        "steps": steps,
        "questions": len(answered),
        "reference_updates": len(updated),
        "matched_contents": len(attributed),
        "records": records,
    }
    return {name: fmean(values) for name, values in means.items() if values} | counts


def answer_stands(question: Question, state: State) -> bool:
    """Whether the gold value stands in a head record of the right owner (any version counts where the question is temporal).

    The gold value is the rubric's items, else the correct option, else the terms of the gold answer. An item that asks for a
    person stands in a record about or from that person whose content the gold answer repeats.
    """
    rubric = rubric_of(question) or _plain_rubric(question)
    candidates = state.derived() if question.temporal_anchors else state.heads()
    said = set(terms(f"{question.question} {question.answer}"))
    return all(any(_stands(item, record, said) for record in candidates) for item in rubric.items)


def update_hits(state: State, reference: State) -> list[bool]:
    """Per UPDATE edge of the reference: whether an edge of `state` has the same owner and layer, and its old and new contents.

    An edge of `state` serves one edge of the reference.
    """
    unused = _changes(state)
    hits = []
    for old, new in _changes(reference):
        found = next(
            (
                change
                for change in unused
                if (change[0].owner, change[0].layer) == (old.owner, old.layer)
                and same_content(change[0].content, old.content)
                and same_content(change[1].content, new.content)
            ),
            None,
        )
        hits.append(found is not None)
        if found is not None:
            unused.remove(found)
    return hits


def attribution_hits(state: State, reference: State) -> list[bool]:
    """Per record of `state` whose content the reference has: whether owner, source and layer are those of such a reference
    record.
    """
    targets = reference.derived()
    hits = []
    for record in state.derived():
        alike = [target for target in targets if same_content(record.content, target.content)]
        if alike:
            place = (record.owner, record.source, record.layer)
            hits.append(any(place == (target.owner, target.source, target.layer) for target in alike))
    return hits


def same_content(a: str, b: str) -> bool:
    """Equal after normalisation, or at least 0.9 similar (Eq. 13)."""
    return normalised_content(a) == normalised_content(b) or text_similarity(a, b) >= SAME_CONTENT


def _changes(state: State) -> list[tuple[Record, Record]]:
    records = {record.entry_id: record for record in state.derived()}
    edges: Sequence[Edge] = state.edges()
    return [(records[edge.old], records[edge.new]) for edge in edges if edge.old in records and edge.new in records]


def _plain_rubric(question: Question) -> Rubric:
    options = option_texts(question.options)
    value = options.get(question.correct_option) or question.answer
    asked = set(terms(question.question))
    return Rubric((Item("", " ".join(term for term in terms(value) if term not in asked) or value),))


def _stands(item: Item, record: Record, said: set[str]) -> bool:
    content = set(terms(record.content))
    if not item.text:
        owners = {record.owner, record.source} if record.owner != GROUP else {record.source}
        return (item.who in owners or set(terms(item.who)) <= content) and content <= said
    return item.who in ("", record.owner) and set(terms(item.text)) <= content
