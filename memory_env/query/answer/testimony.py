"""What the evidence says, statement by statement: a record, or a message with what it goes on with and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memory_env.query.answer.clauses import STRANGER, Clause, addressed, called_upon, clauses, goes_on, takes_back, unfinished
from memory_env.query.protocol import Evidence, EvidenceItem
from memory_env.query.synonyms import canonical_terms
from memory_env.query.wanted import kind_of
from memory_env.records import GROUP, VERBATIM_UTYPE
from memory_env.text import one_line

_REPLY_TURNS = 3
_LONGEST_QUOTE = 400
_MOST_PIECES = 3


@dataclass(frozen=True, slots=True)
class Testimony:
    """A record, or a message with what its speaker says in it. `context`: the terms of the question that it replies to,
    `asked` that question's kind (`kind_of`), `asker` whose it is.

    `place` orders statements by time; `who` is its label: the speaker of a message, the owner of a record.
    """

    item: EvidenceItem
    text: str
    who: str
    parts: tuple[Clause, ...]
    context: frozenset[str] = frozenset()
    asked: str = ""
    asker: str = ""
    place: int = 0
    older: bool = False

    @property
    def said_by(self) -> str:
        return self.item.source

    @property
    def line(self) -> str:
        """As it stands in an answer: on one line, with its speaker."""
        text = " ".join(self.text.split())
        text = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE].rsplit(" ", 1)[0] + " ..."
        told = "" if self.item.utype == VERBATIM_UTYPE or self.said_by in (self.who, "") else f" (said by {self.said_by})"
        return one_line(f"{self.who}: {text}{told}")


def testimonies(evidence: Evidence) -> list[Testimony]:
    """Everything the evidence holds, messages in conversation order, then records."""
    found = _messages(evidence)
    for row in evidence.rows:
        for chain in (*row.chains, *((item,) for item in row.said)):
            for item in chain:
                read = clauses(item.content, "" if item.owner == GROUP else item.owner, evidence.roster)
                # "is allergic to nuts" is a record without its subject, not a question.
                parts = tuple(replace(part, question=part.question and item.content.rstrip().endswith("?")) for part in read)
                place = len(found)
                found.append(
                    Testimony(item, item.content, item.owner, parts, place=place, older=item is not chain[-1] or not item.current)
                )
    return found


def _messages(evidence: Evidence) -> list[Testimony]:
    items = list(evidence.messages)
    known = {item.entry_id for item in items}
    items += [row.fallback for row in evidence.rows if row.fallback is not None and row.fallback.entry_id not in known]
    items = list({item.entry_id or (item.session, item.turn): item for item in items}.values())
    roster = evidence.roster
    found: list[Testimony] = []
    at = {(item.session, item.turn): item for item in items}
    for item in items:
        text = _joined(item, at)
        parts = tuple(clauses(text, item.source, roster))
        after = at.get((item.session, item.turn + 1))
        if after is not None and after.source == item.source and takes_back(after.content):
            parts = tuple(replace(part, unreal=True) for part in parts)
        found.append(Testimony(item, text, item.source, parts, place=len(found)))
    return [_as_reply(each, found, roster) for each in found]


def _joined(item: EvidenceItem, at: Mapping[tuple[str, int], EvidenceItem]) -> str:
    """A message with what its speaker began in the messages before it: "my old boss" / "the one from Lyon" / "runs a hotel"."""
    text, first = item.content, item
    for _ in range(_MOST_PIECES - 1):
        before = at.get((first.session, first.turn - 1))
        if before is None or before.source != item.source or not (unfinished(before.content) and goes_on(first.content)):
            break
        text, first = f"{before.content.strip()} {text}", before
    return text


def _as_reply(reply: Testimony, others: Sequence[Testimony], roster: tuple[str, ...]) -> Testimony:
    """A message with what it answers: the question's terms and kind, and whom the question was about where the reply leaves
    it out."""
    asked = _answered_question(reply, others, roster)
    if asked is None:
        return reply
    about, whoever = addressed(asked.parts, asked.said_by, roster)
    subject = reply.said_by if whoever else about
    first = reply.parts[0]
    if about == STRANGER:
        first = replace(first, subject="", other=first.other or STRANGER)
    elif first.elliptical:
        first = replace(first, subject=subject)
    if subject and about != STRANGER:
        first = replace(first, mentions=first.mentions | {subject})
    asking = " ".join(part.text for part in asked.parts if part.question)
    return replace(
        reply, parts=(first, *reply.parts[1:]), context=canonical_terms(asking), asked=kind_of(asking), asker=asked.said_by
    )


def _answered_question(reply: Testimony, others: Sequence[Testimony], roster: tuple[str, ...]) -> Testimony | None:
    """The question that a message answers: the last one before it in its session, of another, with nothing of its own since."""
    if not reply.parts or any(part.question for part in reply.parts):
        return None
    turns = {each.item.turn: each for each in others if each.item.session == reply.item.session}
    for back in range(1, _REPLY_TURNS + 1):
        before = turns.get(reply.item.turn - back)
        if before is None or before.said_by == reply.said_by:
            return None
        if any(part.question for part in before.parts):
            called = called_upon(before.text, roster)
            return before if called in ("", reply.said_by) else None
    return None
