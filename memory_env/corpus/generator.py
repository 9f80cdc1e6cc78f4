"""From a plan to a network in the native format."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from memory_env.conversation import Message, Question, Session
from memory_env.corpus.dice import Dice
from memory_env.corpus.home import HOME
from memory_env.corpus.phrasebook import Phrasebook
from memory_env.corpus.plan import Plan
from memory_env.corpus.planner import make_plan
from memory_env.corpus.questions import PlannedQuestion, ask_about, choose
from memory_env.corpus.shapes import Shape
from memory_env.network import Network

SCHEMA = "writer-rl-corpus/1"
FIRST_DAY = datetime(2026, 1, 5, 18, 0)
DEFAULT_QUESTIONS = 10
ATTEMPTS = 400


def generate(seed: int, shape: Shape, network_id: str | None = None, book: Phrasebook = HOME) -> tuple[Network, Plan]:
    """The conversation of this seed, shape and language, and the plan that says what a perfect Writer records.

    Same arguments, same bytes, on every machine. Where the shape fixes the number of questions, sub-seeds are tried in order
    until a conversation carries as many; ValueError if none of 400 does.
    """
    name = network_id or f"{shape.name}_{seed:08d}"
    for attempt in range(ATTEMPTS):
        sub_seed = seed * 1_000 + attempt
        plan = make_plan(sub_seed, shape, name, book)
        dice = Dice(sub_seed + (1 << 60))
        candidates = ask_about(plan, dice)
        wanted = shape.questions or min(DEFAULT_QUESTIONS, len(candidates))
        asked = choose(candidates, wanted, dice)
        if len(asked) == wanted and len({q.category for q in asked}) >= shape.categories:
            return _network(plan, asked, seed, shape, dice), plan
    raise ValueError(
        f"shape {shape.name}: no conversation from seed {seed} carries {shape.questions} questions "
        f"of {shape.categories} categories; ask for fewer or add segments"
    )


def _network(plan: Plan, asked: list[PlannedQuestion], seed: int, shape: Shape, dice: Dice) -> Network:
    sessions = tuple(_session(plan, t, dice) for t in range(len(plan.positions)))
    questions = tuple(_question(plan, sessions, i, q, dice) for i, q in enumerate(asked))
    meta = {
        "source": "embedded corpus",
        "source_kind": shape.name,
        "network_id": plan.network_id,
        "seed": seed,
        "n_sessions": len(sessions),
        "n_turns": sum(len(s.turns) for s in sessions),
        "n_qa": len(questions),
    }
    speakers = tuple(m for m in plan.members if any(m == turn.speaker for s in sessions for turn in s.turns))
    return Network(
        plan.network_id,
        f"[corpus:{plan.network_id}] generated group chat",
        speakers,
        sessions,
        questions,
        meta,
        {"schema": SCHEMA},
    )


def _session(plan: Plan, t: int, dice: Dice) -> Session:
    session_id = f"{plan.network_id}_s{t + 1:02d}"
    start = FIRST_DAY + timedelta(days=7 * t)
    turns: list[Message] = []
    minute = 0
    for i, utterance in enumerate(plan.positions[t].messages):
        minute += dice.between(1, 9)
        ts = (start + timedelta(minutes=minute)).isoformat()
        member = f"{plan.network_id}_p{plan.members.index(utterance.speaker) + 1}"
        turns.append(Message(utterance.speaker, utterance.content, ts, f"{session_id}_t{i:03d}", session_id, i, member))
    return Session(session_id, t + 1, f"week {t + 1}", start.date().isoformat(), tuple(turns))


def _question(plan: Plan, sessions: tuple[Session, ...], number: int, asked: PlannedQuestion, dice: Dice) -> Question:
    letters = "ABCD"
    options: Mapping[str, str] | list[Any] = []
    correct = ""
    if asked.choices:
        order = dice.shuffled(asked.choices)
        options = dict(zip(letters, order, strict=True))
        correct = letters[order.index(asked.choices[0])]
    anchors = tuple(_anchors(plan, sessions, asked))
    temporal = tuple({"session_index": a["session_index"], "turn_id": a["turn_id"]} for a in anchors) if asked.temporal else ()
    rubric = {"items": [{"who": w, "text": t} for w, t in asked.items], "wrong": [{"who": w, "text": t} for w, t in asked.wrong]}
    return Question(
        id=f"{asked.category}_{plan.network_id}_{number + 1:02d}",
        category=asked.category,
        question=asked.question,
        answer=asked.answer,
        difficulty=asked.difficulty,
        answer_format="multiple_choice" if options else "long_form",
        options=options,
        correct_option=correct,
        evidence_anchors=anchors,
        temporal_anchors=temporal,
        extra={"rubric": rubric},
    )


def _anchors(plan: Plan, sessions: tuple[Session, ...], asked: PlannedQuestion) -> list[dict[str, Any]]:
    """The turns a question rests on, in chat order."""
    found = sorted(
        (t, event.message, event.operation, event.content)
        for t, position in enumerate(plan.positions)
        for event in position.events
        if event.fact in asked.facts
    )
    anchors = []
    for t, index, operation, content in found:
        turn = sessions[t].turns[index]
        relevance = ("states: " if operation == "ADD" else "changes to: ") + content
        anchors.append(
            {
                "session_index": t + 1,
                "turn_id": turn.turn_id,
                "speaker_display_name": turn.speaker,
                "message_excerpt": turn.content,
                "relevance": relevance,
            }
        )
    return anchors
