"""Small memories to query, built record by record."""

from __future__ import annotations

from memory_env.query.pipeline import QueryPipeline
from memory_env.query.protocol import Question
from memory_env.records import VERBATIM_LAYER, Record
from memory_env.state import MemoryState

ROSTER = ("Alice", "Bob", "Carol", "Zoe")


def message(number: int, speaker: str, content: str, session: str = "s1", turn: int | None = None) -> Record:
    return Record(
        f"m{number}", content, speaker, speaker, VERBATIM_LAYER, "utterance", session=session,
        turn=number if turn is None else turn, turn_created=0, ts=f"2025-01-01T10:{number:02d}:00", confidence=0.6,
    )  # fmt: skip


def record(
    number: int,
    owner: str,
    content: str,
    source: str = "",
    layer: str = "",
    new: int | None = None,
    old: int | None = None,
    cites: tuple[str, ...] = (),
) -> Record:
    layer = layer or ("group_interaction" if owner == "GROUP" else "per_speaker_core")
    return Record(
        f"d{number}", content, owner, source or owner, layer, "fact", session="s1", turn_created=number, ts="2025-01-01",
        from_ids=cites, superseded_by="" if new is None else f"d{new}", links=() if old is None else (f"d{old}",),
    )  # fmt: skip


def memory(*records: Record, roster: tuple[str, ...] = ROSTER) -> MemoryState:
    return MemoryState.from_records(records, roster)


def asked(text: str, **fields: object) -> Question:
    return Question(id=fields.pop("id", "q1"), category="Q1", question=text, answer=fields.pop("answer", ""), **fields)


def evidence_of(text: str, state: MemoryState, pipeline: QueryPipeline | None = None):
    pipeline = pipeline or QueryPipeline()
    return pipeline.evidence(text, pipeline.index(state))


CLUB = memory(
    message(0, "Alice", "shall we build the pool?"),
    message(1, "Bob", "yes please"),
    message(2, "Alice", "I could eat olives all day long"),
    message(3, "Bob", "nobody beats Carol at chess"),
    message(4, "Carol", "the pool will cost too much"),
    message(5, "Bob", "we decided, the picnic is on Monday at the harbor"),
    record(0, "Alice", "Alice's favourite snack is olives", new=1, cites=("m2",)),
    record(1, "Alice", "Alice's favourite snack is figs", old=0),
    record(2, "Carol", "Carol is good at chess", source="Bob", layer="per_speaker_profile", cites=("m3",)),
    record(3, "Carol", "Carol is often late on Friday", source="Alice", layer="per_speaker_profile"),
    record(4, "GROUP", "The picnic is on Monday at the harbor", source="Bob", cites=("m5",)),
    record(5, "GROUP", "Alice and Bob are cousins", source="Alice"),
    record(6, "Alice", "Alice supports the pool plan", cites=("m0",)),
    record(7, "Bob", "Bob opposes the pool plan"),
    record(8, "GROUP", "The no phones rule does not apply to Bob", source="Carol", layer="group_insight"),
    record(9, "GROUP", "No phones during dinner", source="Carol", layer="group_insight"),
)
