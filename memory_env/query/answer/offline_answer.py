"""A deterministic, extractive answerer: it reads the most relevant evidence of every row and states it. It needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory_env.query.asked import Asked
from memory_env.query.mentions import find_mentions
from memory_env.query.protocol import Answer, Evidence, EvidenceItem, EvidenceRow, Question, blind
from memory_env.query.retrieve.system2 import row_issue
from memory_env.query.retrieve.terms import term_match, terms
from memory_env.query.source_digest import source_digest
from memory_env.query.statements import NOTHING, Statement, render
from memory_env.records import GROUP, VERBATIM_UTYPE

# Messages say in more words what a record says in few; below this they are about something else.
_MESSAGE_FLOOR = 0.25
# Evidence this close to the best of its row is stated too, up to _MOST statements: the reader cannot tell which one is meant.
_NEAR = 0.9
_MOST = 2


@dataclass(frozen=True, slots=True)
class Reading:
    """A chain (oldest first) or a message, and how well it fits the issue."""

    score: float
    versions: tuple[EvidenceItem, ...]

    @property
    def newest(self) -> EvidenceItem:
        return self.versions[-1]


class OfflineAnswerer:
    """Answers with lines "Name: statement", a chosen option, or the persons asked for.

    It never sees a gold answer, an anchor or a rubric (`blind`). System 2 is read first; a row without records is read from the
    verbatim messages. At most two statements a row: what memory does not order, it can't decide.

    Example: evidence with the row Ana = "Ana's pet is a gecko" and "What is Ana's pet?" -> Answer("Ana: Ana's pet is a gecko").
    """

    @property
    def fingerprint(self) -> Mapping[str, str]:
        return {"answerer": f"offline:{source_digest('asked', 'mentions', 'offline_answer', 'statements', 'terms')}"}

    def answer(self, question: Question, evidence: Evidence) -> Answer:
        question = blind(question)
        asked = Asked.of(question.question, evidence.projection.mode)
        options = option_texts(question.options)
        if options:
            return _choose(options, asked, evidence)
        if asked.persons:
            return Answer(render(_persons(asked, evidence)))
        return Answer(render(_rows(asked, evidence)))


def option_texts(options: object) -> dict[str, str]:
    """Options by letter, whether the file has a mapping or a list (then A, B, ... in order)."""
    if isinstance(options, Mapping):
        return {str(letter): str(text) for letter, text in options.items()}
    return {chr(ord("A") + place): str(text) for place, text in enumerate(options or ())}  # type: ignore[var-annotated, arg-type]


def _rows(asked: Asked, evidence: Evidence) -> list[Statement]:
    """Statements row by row; GROUP's row beside members' rows only where it fits the issue better, and a question that names
    nobody is answered from the best row alone.
    """
    stated: list[tuple[str, float, list[Statement]]] = []
    for owner in evidence.projection.rows:
        readings = _row_readings(owner, evidence)
        texts = [item.content for reading in _nearest(readings) for item in asked.versions(reading.versions, _content)]
        score = readings[0].score if texts else -1.0
        stated.append((owner, score, [Statement(owner, text) for text in _without_repeats(texts)]))
    members = max((score for owner, score, _ in stated if owner != GROUP), default=-1.0)
    group = next((score for owner, score, _ in stated if owner == GROUP), -1.0)
    if evidence.projection.scope == "ANY":
        stated = [row for row in stated if row[1] == max(group, members) and (row[0] == GROUP or members > group)]
    elif evidence.projection.scope == "names" and len(stated) > 1:
        stated = [row for row in stated if (row[0] == GROUP) == (group > members)]
    elif evidence.projection.scope == "ALL":
        stated = [row for row in stated if row[0] != GROUP or group >= members]
    return [each for owner, _, found in stated for each in (found or [Statement(owner, NOTHING)])]


def _persons(asked: Asked, evidence: Evidence) -> list[Statement]:
    """The persons of the best-fitting records, each with what the record says."""
    readings = sorted(_all_readings(evidence), key=lambda reading: -reading.score)
    named: list[tuple[float, list[Statement]]] = []
    for reading in readings:
        for item in asked.versions(reading.versions, _content):
            persons = _person_of(item, asked, set(evidence.projection.names), evidence.roster)
            if persons:
                named.append((reading.score, [Statement(person, item.content) for person in persons]))
    nearest = [found for score, found in named if score >= _NEAR * named[0][0]]
    if asked.single or asked.several:
        nearest = nearest[:1]
    statements = {each.who: each for found in reversed(nearest) for each in found}
    return list(statements.values()) or [Statement("", NOTHING)]


def _choose(options: Mapping[str, str], asked: Asked, evidence: Evidence) -> Answer:
    """The option best supported by one record; none, rather than a guess, when nothing supports any."""
    people = {letter: [name for name in evidence.roster if terms(name) == terms(text)] for letter, text in options.items()}
    persons = all(people.values())
    named = set(evidence.projection.names)
    support = dict.fromkeys(options, 0.0)
    for reading in _all_readings(evidence):
        for item in asked.versions(reading.versions, _content):
            whom = set(_person_of(item, asked, named, evidence.roster)) if persons else set()
            for letter, text in options.items():
                fit = float(people[letter][0] in whom) if persons else _coverage(text, item.content)
                support[letter] = max(support[letter], reading.score * fit)
    best = max(support.values(), default=0.0)
    winners = [letter for letter, value in support.items() if value == best]
    if best <= 0.0 or len(winners) > 1:
        return Answer(NOTHING)
    return Answer(options[winners[0]], winners[0])


def _person_of(item: EvidenceItem, asked: Asked, named: set[str], roster: tuple[str, ...]) -> list[str]:
    """The person a record gives for an answer: its source where the question asks who said it; else its owner, or the
    members that a GROUP record names; a message's speaker, with the members it names where several are asked for. Nobody the
    question names.
    """
    mentioned = [mention.name for mention in find_mentions(item.content, roster)]
    if asked.sayers:
        persons = [item.source]
    elif item.utype == VERBATIM_UTYPE:
        persons = [item.source, *mentioned] if asked.several else mentioned[:1] or [item.source]
    else:
        persons = mentioned if item.owner == GROUP else [item.owner]
    return [person for person in dict.fromkeys(persons) if person not in named]


def _all_readings(evidence: Evidence) -> Iterator[Reading]:
    """System 2's readings of every row; where they give nothing, the verbatim messages'."""
    found = [reading for owner in evidence.projection.rows for reading in _record_readings(owner, evidence, with_said=True)]
    found = [reading for reading in found if reading.score > 0]
    if not found:
        issue = terms(" ".join([evidence.projection.issue, *evidence.projection.names]))
        found = _message_readings(evidence.messages, issue)
    yield from found


def _row_readings(owner: str, evidence: Evidence) -> list[Reading]:
    """What is known about one row, best first: its records, else the fallback, else fitting messages."""
    readings = _record_readings(owner, evidence)
    if readings:
        return readings
    projection, row = evidence.projection, _row(owner, evidence)
    issue = terms(row_issue(projection, owner))
    if row is not None and row.fallback is not None:
        return [Reading(term_match(issue, terms(row.fallback.content)), (row.fallback,))]
    if owner == GROUP:
        return _message_readings(evidence.messages, issue)
    about = [item for item in evidence.messages if item.source != owner and _mentions(item.content, owner, evidence.roster)]
    if projection.source and owner == projection.owner:
        return _message_readings([item for item in about if item.source == projection.source], (*issue, *terms(owner)))
    own = [item for item in evidence.messages if item.source == owner]
    kept = sorted((*own, *about), key=evidence.messages.index)
    return _message_readings(kept, issue, owner)


def _record_readings(owner: str, evidence: Evidence, with_said: bool = False) -> list[Reading]:
    row = _row(owner, evidence)
    if row is None:
        return []
    issue = terms(row_issue(evidence.projection, owner))
    own = set(terms(owner))
    chains = [*row.chains, *((item,) for item in row.said)] if with_said else list(row.chains)
    scored = [
        Reading(max(term_match(issue, [t for t in terms(item.content) if t not in own]) for item in chain), tuple(chain))
        for chain in chains
    ]
    return sorted(scored, key=lambda reading: -reading.score)


def _message_readings(messages: Sequence[EvidenceItem], issue: Sequence[str], owner: str = "") -> list[Reading]:
    """Fitting messages best first; those that fit about equally are versions of one reading, by time: the last one holds.

    A message is compared with its speaker's name, but without the name of the row's owner.
    """
    own = set(terms(owner))
    scored = [
        (term_match(issue, set(terms(f"{item.source} {item.content}")) - own), place, item) for place, item in enumerate(messages)
    ]
    scored = sorted((each for each in scored if each[0] >= _MESSAGE_FLOOR), key=lambda each: (-each[0], each[1]))
    if not scored:
        return []
    near = [each for each in scored if each[0] >= _NEAR * scored[0][0]]
    versions = tuple(item for _, _, item in sorted(near, key=lambda each: each[1]))
    return [Reading(scored[0][0], versions)] + [Reading(score, (item,)) for score, _, item in scored[len(near) :]]


def _without_repeats(texts: Sequence[str]) -> list[str]:
    """Consecutive equal texts once; a value that comes back later in a history stays."""
    return [text for place, text in enumerate(texts) if not place or text != texts[place - 1]]


def _nearest(readings: Sequence[Reading]) -> list[Reading]:
    return [reading for reading in readings if reading.score >= _NEAR * readings[0].score][:_MOST]


def _row(owner: str, evidence: Evidence) -> EvidenceRow | None:
    return next((row for row in evidence.rows if row.owner == owner), None)


def _mentions(content: str, name: str, roster: tuple[str, ...]) -> bool:
    return any(mention.name == name for mention in find_mentions(content, roster))


def _coverage(option: str, content: str) -> float:
    wanted = set(terms(option))
    return len(wanted & set(terms(content))) / len(wanted) if wanted else 0.0


def _content(item: EvidenceItem) -> str:
    return item.content
