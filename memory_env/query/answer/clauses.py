"""What one chat message says, clause by clause, and of whom: its speaker, another, or somebody the message does not name.

Who spoke is known; whom a clause is about is read from its words. "My brother lives in Rome" is said by its speaker and is not
about them; neither is quoted, pasted or forwarded text. English rules: other languages are read as the speaker's own statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from memory_env.query.answer.quoted import SAYING, member_called, passages, put_in_a_mouth
from memory_env.query.people import find_people

_KIN_WORDS = """
    brother sister mother mum mom mummy mama father dad daddy papa son daughter child children kid kids baby wife husband
    partner girlfriend boyfriend fiance fiancé fiancée fiancee uncle aunt cousin nephew niece grandmother grandfather
    grandma grandpa granny grandson granddaughter friend friends mate colleague colleagues coworker boss neighbour neighbor
    neighbours flatmate roommate landlord teacher doctor twin parents parent family inlaws stepmother stepfather stepbrother
    stepsister godmother godfather ex team manager client student students buddy bestie
"""
KIN = frozenset(_KIN_WORDS.split())
"""Nouns for somebody else: "my brother lives ..." is not about the speaker."""

_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+|(?<=[^\W_])\s*;\s+")
_NEW_SUBJECT = r"(?:(?:I|i|we|We|he|He|she|She|they|They|you|You)(?:'\w+|’\w+)?|my|My|our|Our|his|her|their|[A-Z][\w’'-]+)"
_CLAUSE = re.compile(
    rf",?\s+(?:and|but|while|whereas|because|although|though|so)\s+(?={_NEW_SUBJECT}\s)|,\s+(?=(?:I|i|my|My|he|she|they)(?:['’]\w+)?\s)"
)
_OPENING = re.compile(
    r"^\W*(?:(?:yes|yeah|yep|no|nope|nah|ok|okay|well|so|btw|by the way|actually|honestly|thanks|thank you|and|but|oh"
    r"|ah|hey|hi|hello|haha|lol|sure"
    r"|of course|great|wow|then|now|also|today|yesterday|right|hm+|um+|sorry|please|update|noted|fyi|true"
    r"|congratulations|congrats)\b[\s,.:!–-]*)+",
    re.IGNORECASE,
)
_SELF = re.compile(r"^(?:i|im|ive|id|me|mine|myself|we|us|ours?)(?:['’]\w+)?\b|^(?:am|i['’]m)\b", re.IGNORECASE)
_OWN = re.compile(r"^(?:my|our)\s+(?:own\s+)?(?P<rest>.*)$", re.IGNORECASE | re.DOTALL)
_OTHER = re.compile(
    r"^(?:he|she|they|his|her|hers|their|theirs|him|them|someone|somebody|everyone|people|nobody)(?:['’]\w+)?\b", re.IGNORECASE
)
_NEUTRAL = re.compile(r"^(?:it|its|this|that|there|these|those|here)(?:['’]\w+)?\b", re.IGNORECASE)
_ADDRESSEE = re.compile(r"^(?:you|your|yours|u|ur)(?:['’]\w+)?\b", re.IGNORECASE)
_THIRD_VERB = re.compile(
    r"^(?:always |never |still |also |just |really )?(?:lives|likes|loves|hates|works|wants|needs|has|is|was|plays"
    r"|drinks|eats|drives|prefers|thinks|says"
    r"|does|goes|comes|knows|studies|teaches|moves|owns|keeps|speaks|makes|takes|gets|doesn['’]?t|isn['’]?t|wasn['’]?t|hasn['’]?t)\b",
    re.IGNORECASE,
)
_NOUN_SUBJECT = re.compile(
    r"^(?:the\s+|a\s+)?(?P<noun>[A-Z][\w’'-]+(?:\s+[A-Z][\w’'-]+)*)(?:['’]s\s+\w+)?\s+(?:(?:also|really|always|never|just|still)\s+)?"
    r"(?:is|was|has|had|will|would|can|does|did|lives|likes|loves|hates|works|wants|needs|prefers|said|says|moved|got|went|bought|\w{3,}s|\w{3,}ed)\b"
)
_QUESTION = re.compile(
    r"^(?:who|whom|whose|what|when|where|why|how|which|do|does|did|is|are|was|were|will|would|can|could|should|has|have|had|may|shall|am"
    r"|anyone|anybody|i wonder|wondering|any idea|does anyone|tell me|remind me|do you know)\b",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"\b(?:wish|if only|would(?:n['’]t)? (?:love|like|rather) to|imagine|pretend|suppose|in a dream|just kidding|joking"
    r"|april fool)\b"
    r"|^(?:even |what |only )?if\b|\bi['’]d (?:love|like|rather)\b|\bas if\b|\bmight\b|\bwould\b.*\bif\b"
    r"|^(?:unless|in case|provided|as long as|hypothetically)\b|^(?:had|were|should) (?:i|we|you|he|she|they)\b"
    r"|^(?:let['’]?s )?say (?:i|we|you)\b"
    r"|\b(?:would|could|should|might)(?:['’]ve| have)\b",
    re.IGNORECASE,
)
# What is said and not meant: a mark in the sentence, or the next one that takes it back ("I love tax forms. Not.").
_UNMEANT = re.compile(r"🙄|🙃|(?:^|\s)/s\b")
_TAKEN_BACK = re.compile(
    r"^\W*(?:not|nope|jk|(?:just |only )?(?:kidding|joking)|in your dreams|yeah,? right|i wish|april fools?)\W*$"
    r"|^\W*(?:i was|that was|it was|i['’]?m)\s+(?:just |only |of course )*"
    r"(?:joking|kidding|a joke|sarcasm|being sarcastic|sarcastic|ironic)\b",
    re.IGNORECASE,
)
_OF_MINE = re.compile(
    r"^(?:the|a|an|one|some|all)\s+(?P<head>\w+(?:\s\w+)?)\s+of\s+(?:mine\b|(?:my|our)\s+(?P<whose>\w+))", re.IGNORECASE
)
_NEGATED = re.compile(
    r"\b(?:not|never|no longer|nobody|no one|no|nor|neither|none|without|cannot|cant|dont|doesnt|didnt|isnt|wont)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_VOCATIVE = re.compile(r"^\W*@?(?P<who>[^\W\d_][\w .'’-]{0,38}?)\s*[,:!]\s+")
_CALLED = re.compile(r"^\W*@?(?P<who>[^\W\d_][\w .'’-]{0,38}?)\s+(?=(?:you|your|u|ur)(?:['’]\w+)?\b)")
STRANGER = "a stranger"
_ENDS = re.compile(r"[.!?…:;)\"”]\s*$")


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause. `subject`: the member it is about; "" where it is about no member, or about one that its words do not tell.

    `other`: it is about somebody or something that its words do name ("brother", "Tom"), so never about its speaker; `of`: the
    member whose that is ("my brother", "Bob's cat").
    `own`: its speaker says it themselves; False for quoted, pasted and forwarded words. `question`, `unreal` (wishes, conditions)
    and `negated` say what kind of statement it is; `elliptical`: its subject is left out, as in answers.

    Example: "My brother lives in Rome" by Ana -> Clause("My brother lives in Rome", subject="", other="brother", of="Ana", ...).
    """

    text: str
    subject: str
    other: str = ""
    of: str = ""
    own: bool = True
    question: bool = False
    unreal: bool = False
    negated: bool = False
    elliptical: bool = False
    mentions: frozenset[str] = frozenset()


def clauses(text: str, speaker: str, roster: tuple[str, ...]) -> list[Clause]:
    """The clauses of a message of `speaker`, in order."""
    found: list[Clause] = []
    for passage in passages(text, speaker, roster):
        found += _parts(passage.text, passage.author, roster, passage.own)
    return found


def _parts(text: str, speaker: str, roster: tuple[str, ...], own: bool) -> list[Clause]:
    found: list[Clause] = []
    sentences = _SENTENCE.split(text)
    for sentence, after in zip(sentences, (*sentences[1:], ""), strict=True):
        asks = sentence.rstrip().endswith("?")
        other = put_in_a_mouth(sentence, speaker, roster) if own and not asks else None
        if other is not None:
            found += _parts(other.text, other.author, roster, own=False)
            continue
        unmeant = takes_back(after) or bool(_UNMEANT.search(sentence))
        for part in _divided(sentence):
            clause = _clause(part, speaker, roster, own, asks)
            found.append(replace(clause, unreal=True) if unmeant else clause)
    return found


def _divided(sentence: str) -> list[str]:
    """A sentence where a new subject begins; "Bob and I went" has one subject: a clause is at least two words."""
    parts, start = [], 0
    for joint in _CLAUSE.finditer(sentence):
        if len(sentence[start : joint.start()].split()) >= 2:
            parts.append(sentence[start : joint.start()])
            start = joint.end()
    return [part.strip() for part in (*parts, sentence[start:]) if part.strip()]


def _clause(text: str, speaker: str, roster: tuple[str, ...], own: bool, asks: bool) -> Clause:
    people = find_people(text, roster)
    members = frozenset(named.members[0] for named in people if len(named.members) == 1)
    core, addressee = _core(text, roster)
    kind: dict[str, Any] = {
        "own": own,
        "question": asks or bool(_QUESTION.match(core)),
        "unreal": bool(_UNREAL.search(core)),
        "negated": bool(_NEGATED.search(text.split(",")[0])),
        "mentions": members,
    }
    about = _subject(core, speaker, roster)
    if _ADDRESSEE.match(core):
        about = _Subject(addressee, "" if addressee else "you")
    return Clause(text, about.member, about.other, about.of, elliptical=about.elliptical, **kind)


def _core(text: str, roster: tuple[str, ...]) -> tuple[str, str]:
    """A clause without greetings and the name it calls to, and the member it calls to."""
    core, addressee = _OPENING.sub("", text.strip()), ""
    for pattern in (_VOCATIVE, _CALLED):
        called = pattern.match(core)
        member = member_called(called["who"], roster) if called else ""
        if not called or not member:
            continue
        core, addressee = _OPENING.sub("", core[called.end() :]), member
    return core.strip(" -–—*•"), addressee


class _Subject(NamedTuple):
    """See the fields of `Clause`."""

    member: str = ""
    other: str = ""
    of: str = ""
    elliptical: bool = False


def _subject(core: str, speaker: str, roster: tuple[str, ...]) -> _Subject:
    """Whom a clause of `speaker` is about."""
    if not core:
        return _Subject(speaker, elliptical=True)
    own = _OWN.match(core)
    if own:
        return _Subject(of=speaker, other=_thing(own["rest"]))
    if _SELF.match(core):
        return _Subject(speaker)
    distant = _OF_MINE.match(core)
    if distant:
        return _Subject(of=speaker, other=f"{distant['head']} {distant['whose'] or 'friend'}".lower())
    reported = re.match(
        rf"(?:according to\s+)?(?P<who>.{{1,40}}?)\s+(?:\w+ly\s+|just\s+|also\s+|has\s+|had\s+)?(?:{SAYING})\b", core
    )
    for who in (reported["who"] if reported else "", core):
        named = next((each for each in find_people(who, roster) if each.start == 0 and len(each.members) == 1), None)
        if named is None:
            continue
        owned = re.match(r"(?:'s|’s|['’](?=\s))\s*(?P<rest>.*)", core[named.end :], re.DOTALL)
        if owned:
            return _Subject(of=named.members[0], other=_thing(owned["rest"]))
        joined = re.match(r"\s*(?:,|and|&)\s*(?:I|me|my)\b", core[named.end :])
        return _Subject(speaker if joined else named.members[0])
    if _OTHER.match(core):
        return _Subject(other="they")
    if _NEUTRAL.match(core):
        return _Subject()
    if _THIRD_VERB.match(core):
        return _Subject(other="left out")
    noun = _NOUN_SUBJECT.match(core)
    if noun:
        return _Subject(other=noun["noun"])
    kin = re.match(
        r"(?:the\s+)?(?P<who>\w+)\s+(?:is|was|has|lives|likes|loves|hates|works|wants|said|moved|\w{3,}s|\w{3,}ed)\b", core
    )
    if kin and kin["who"].lower() in KIN:
        return _Subject(other=kin["who"].lower())
    return _Subject(speaker, elliptical=True)


def _thing(rest: str) -> str:
    """What "my ..." or "Bob's ..." speaks of: "new flat" of "new flat is tiny"."""
    before_verb = re.match(
        r"((?:[\w’'-]+\s+){0,3}?[\w’'-]+)\s+(?:is|was|are|were|has|had|will|would|can|\w{2,}s|\w{2,}ed)\b", rest
    )
    return (before_verb[1] if before_verb else " ".join(rest.split()[:2])).lower().strip(".,!?")


def takes_back(text: str) -> bool:
    """Whether a sentence says that the one before it was not meant: "Not.", "just kidding"."""
    return bool(_TAKEN_BACK.match(text))


def unfinished(text: str) -> bool:
    """Whether a message breaks off, so that its speaker's next one goes on with it: "My sister" / "lives in Rome"."""
    return bool(text.strip()) and not _ENDS.search(text) and len(text.split()) <= 8


def goes_on(text: str) -> bool:
    """Whether a message may be the second half of one."""
    return text[:1].islower()


def called_upon(text: str, roster: tuple[str, ...]) -> str:
    """The member whom a message calls by name: "Bob, did you take the cat?" calls Bob; "" for none."""
    return next((who for sentence in _SENTENCE.split(text) for who in (_core(sentence, roster)[1],) if who), "")


def addressed(parts: Sequence[Clause], asker: str, roster: tuple[str, ...]) -> tuple[str, bool]:
    """(member that the question among `parts` is about, whether it is about whoever answers). ("", False): about neither."""
    asked = [clause for clause in parts if clause.question]
    if not asked:
        return "", False
    clause = asked[-1]
    core, called = _core(clause.text, roster)
    if re.search(r"\b(?:you|your|u|ur)\b", core, re.IGNORECASE):
        return called, not called
    about = [name for name in clause.mentions if name != called]
    strangers = [named.text for named in find_people(core, roster) if not named.members]
    if about or strangers:
        return (about[0] if about else STRANGER), False
    return (asker, False) if re.search(r"\b(?:I|my|me)\b", core) else ("", False)
