"""Whom a question to a living memory names: members by any part of their name, all of one name, and strangers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from memory_env.query.members import former_of
from memory_env.query.mentions import AMBIGUOUS
from memory_env.query.project import RuleProjector
from memory_env.query.protocol import Projection
from memory_env.query.source_digest import source_digest
from memory_env.records import GROUP
from memory_env.roster import RESERVED

_WORD = re.compile(r"[^\W_]+(?:[-'’](?!s\b)[^\W_]+)*", re.UNICODE)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_POSSESSIVE = re.compile(r"(?:'s|’s)(?!\w)|(?<=s)['’](?=\s)")
# A name that is an English word too is a name in these places only.
_BEFORE_NAME = re.compile(
    r"\b(?:does|did|is|was|has|had|about|of|with|from|to|by|for|and|or|than|like|know|knows|think|thinks|tell|told|ask|asked|will|would"
    r"|can|could|should|where's|who's|what's|how's|when's|did|that|whether|if|according\s+to)\s+$",
    re.IGNORECASE,
)
_BEFORE_MONTH = re.compile(
    r"\b(?:in|on|since|until|till|before|after|during|next|last|this|early|late|mid|of|by|from)\s+$", re.IGNORECASE
)
_BEFORE_PLACE = re.compile(r"\b(?:in|at|to|from|on|near|into|the|via|around|outside|inside|through|for)\s+$", re.IGNORECASE)
_MONTHS_WORDS = """
    january february march april may june july august september october november december
"""
_MONTHS = frozenset(_MONTHS_WORDS.split())
_NOT_NAMES_WORDS = """
    monday tuesday wednesday thursday friday saturday sunday i i'm i've i'll i'd english french german spanish italian
    christmas easter ok mr mrs ms dr what what's who who's where where's when when's why why's how how's which whose whom
    that that's it it's there there's let let's he he's she she's here here's one someone somebody anyone anybody everyone
    everybody nobody group all does did is was are were has had have will would can could should do am may might shall must
    and but so or if the a an my your our his their this these those in on at to for from of about with by please tell name
    list give describe today tomorrow yesterday tonight dad mum mom mother father brother sister
"""
_NOT_NAMES = _MONTHS | frozenset(_NOT_NAMES_WORDS.split())
_AUXILIARY = re.compile(r"\b(?:does|did|is|was|are|were|has|had|have|will|would|can|could|should|do)\s+$", re.IGNORECASE)
_ABOUT = re.compile(
    r"\b(?:about|of|with|by|know|knows|tell|told|ask|asked|and|or|than|to|called|named|meet|met)\s+$", re.IGNORECASE
)
_THIRD_PERSON = re.compile(r"\s+(?:\w+s|did|had|said|told|wants?|went|live|like|work)\b")
_PARTICLES_WORDS = """
    de da di van von der den la le el al bin ibn the of and member unnamed mr mrs ms dr jr sr
"""
_PARTICLES = frozenset(_PARTICLES_WORDS.split())
_MOST_READINGS = 24


@dataclass(frozen=True, slots=True)
class Named:
    """A person named at text[start:end]; `members` are those it may mean, none for a name that no member has.

    Example: "Where does Sam live?" with Sam Lee and Sam Roy -> Named("Sam", 11, 14, ("Sam Lee", "Sam Roy")).
    """

    text: str
    start: int
    end: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuestionReading:
    """One way to understand a question: whom each name means, the projection that follows, the names nobody bears, and
    `former`: for members who are named by a name that they bore before, that name."""

    projection: Projection
    unknown: tuple[str, ...] = ()
    former: tuple[tuple[str, str], ...] = ()


@lru_cache(maxsize=256)
def _spellings(roster: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """What people may call whom, in lower case: whole names, former ones, and every part of either, with all members it may
    mean."""
    found: dict[str, dict[str, None]] = {}
    for name, member in (*zip(roster, roster, strict=True), *former_of(roster)):
        plain = re.sub(r"\s*\(\d+\)$", "", name)  # "Alice (2)" is called Alice too
        parts = [part for part in _WORD.findall(plain) if len(part) > 1 or _CJK.search(part)]
        if plain.lower() in {f"{word} (member)" for word in RESERVED}:
            parts = []
        for spelling in (name, plain, *(part for part in parts if part.lower() not in _PARTICLES)):
            found.setdefault(" ".join(_WORD.findall(spelling)).lower() or spelling.lower(), {})[member] = None
    # The whole name of one member is not a part of another's, unless it is one word: "Sam" may be Sam or Sam Lee.
    return {spelling: tuple(members) for spelling, members in found.items()}


def find_people(text: str, roster: tuple[str, ...]) -> tuple[Named, ...]:
    """The people named in a question, in order of place: members, then what else looks like a person's name."""
    found: list[Named] = []
    spellings = _spellings(roster)
    longest = max((spelling.count(" ") + 1 for spelling in spellings), default=1)
    tokens = list(_WORD.finditer(text))
    place = 0
    while place < len(tokens):
        for length in range(min(longest, len(tokens) - place), 0, -1):
            span = tokens[place : place + length]
            start, end = span[0].start(), span[-1].end()
            spelling = " ".join(token.group() for token in span)
            members = spellings.get(spelling.lower())
            if members and (length > 1 or _is_name(text, start, end, members)):
                found.append(Named(text[start:end], start, end, members))
                place += length - 1
                break
        place += 1
    found += _in_script_without_spaces(text, roster, found)
    found += _unknown(text, tokens, found)
    return tuple(sorted(found, key=lambda named: named.start))


def _is_name(text: str, start: int, end: int, members: tuple[str, ...]) -> bool:
    """Whether a word that a member is called by is the name here, not an English word, a month, or a pronoun."""
    word, before, after = text[start:end], text[:start], text[end:]
    low = word.lower()
    common = low in AMBIGUOUS or low in _MONTHS or low in ("a", "i")
    if not common:
        return True
    if _POSSESSIVE.match(after):
        return True
    opens = not before.strip(" \"'¿¡(") or bool(re.search(r"[.!?:]\s*$", before))
    if low == "i":
        return bool(re.search(r"\b(?:does|is|was|has|about|of|by)\s+$", before, re.IGNORECASE))
    if low in _MONTHS and (_BEFORE_MONTH.search(before) and not re.match(r"\s+\w+s\b", after) or re.match(r"\s+\d", after)):
        return bool(re.search(r"\babout\s+$", before))
    if low == "a" and word == "a":
        return False
    if opens:
        follows = _THIRD_PERSON.match(after)
        return word[:1].isupper() and bool(
            follows or (low not in ("will", "may", "a") and not re.match(r"\s+(?:the|a|an)\b", after))
        )
    if word[:1].isupper():
        return True
    if re.match(r"\W*[A-Z]", text):
        return False  # whoever begins with a capital writes names with one
    # In lower case: "what does will do", "will's job", "about mark"; not "will the group ..." or "what will he do".
    return bool(_BEFORE_NAME.search(before)) and not re.match(r"\s+(?:the|a|an|he|she|they|we|you|i|it|there)\b", after, re.I)


def _in_script_without_spaces(text: str, roster: tuple[str, ...], found: list[Named]) -> Iterator[Named]:
    for name, member in (*zip(roster, roster, strict=True), *former_of(roster)):
        if _CJK.search(name):
            for match in re.finditer(re.escape(name), text):
                if not any(match.start() < other.end and other.start < match.end() for other in found):
                    yield Named(name, match.start(), match.end(), (member,))


def _unknown(text: str, tokens: list[re.Match[str]], found: list[Named]) -> Iterator[Named]:
    """Capitalised words that stand where a person stands: "Peter's job", "does Peter Pan live", "about Peter"."""
    place = 0
    while place < len(tokens):
        run = place
        while run < len(tokens) and _capital(tokens[run].group()) and not _taken(tokens[run], found):
            if run > place and text[tokens[run - 1].end() : tokens[run].start()] != " ":
                break
            run += 1
        if run == place:
            place += 1
            continue
        start, end = tokens[place].start(), tokens[run - 1].end()
        before, after = text[:start], text[end:]
        person = _POSSESSIVE.match(after) or _AUXILIARY.search(before) or _ABOUT.search(before)
        if person and not (_BEFORE_PLACE.search(before) and not _ABOUT.search(before) and not _POSSESSIVE.match(after)):
            yield Named(text[start:end], start, end, ())
        place = run


def _capital(word: str) -> bool:
    return word[:1].isupper() and word.lower() not in _NOT_NAMES and len(word) > 1


def _taken(token: re.Match[str], found: list[Named]) -> bool:
    return any(token.start() < other.end and other.start < token.end() for other in found)


def readings(question: str, roster: tuple[str, ...]) -> tuple[QuestionReading, ...]:
    """Every way to read a question's names; one where no name is ambiguous.

    Example: "Does Sam know Ana?" with Sam Lee and Sam Roy -> a reading of (Sam Lee, Ana) and one of (Sam Roy, Ana).
    """
    people = find_people(question, roster)
    unknown = tuple(dict.fromkeys(named.text for named in people if not named.members))
    known = [named for named in people if named.members]
    choices = _choices(known)
    return tuple(
        QuestionReading(_project(question, roster, known, choice), unknown, _by_former_name(known, choice, roster))
        for choice in choices
    )


def _by_former_name(known: list[Named], choice: tuple[str, ...], roster: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """(member, former name) for those whom the question names by a former name alone."""
    if not former_of(roster):
        return ()
    now = _spellings(tuple(roster))
    found = {}
    for named, name in zip(known, choice, strict=True):
        said = " ".join(_WORD.findall(named.text)).lower()
        if name not in now.get(said, ()):
            bore = [old for old, member in former_of(roster) if member == name and said in _spellings((old,))]
            found[name] = bore[-1] if bore else named.text
    return tuple(found.items())


def _choices(known: list[Named]) -> list[tuple[str, ...]]:
    """Whom the names mean, together; the same word means the same member throughout."""
    words = list(dict.fromkeys(named.text.lower() for named in known))
    members = {named.text.lower(): named.members for named in known}
    found = []
    for choice in product(*(members[word] for word in words)):
        meant = dict(zip(words, choice, strict=True))
        found.append(tuple(meant[named.text.lower()] for named in known))
        if len(found) == _MOST_READINGS:
            break
    return found


def _project(question: str, roster: tuple[str, ...], known: list[Named], choice: tuple[str, ...]) -> Projection:
    """The rules' projection of a question whose names are put as plain marks, which no rule takes for a word."""
    marks = {name: f"Xq{chr(ord('a') + place % 26)}{place}" for place, name in enumerate(dict.fromkeys(choice))}
    names = {mark: name for name, mark in marks.items()}
    parts, place = [], 0
    for named, name in zip(known, choice, strict=True):
        spaced = not _CJK.search(named.text)
        parts += [question[place : named.start], marks[name] if spaced else f" {marks[name]} "]
        place = named.end
    plain = "".join([*parts, question[place:]])
    found = _RULES.project(plain, tuple(names))
    if found.scope in ("ALL", "ANY"):
        rows = (*roster, *((GROUP,) if GROUP in found.rows else ()))
    else:
        rows = tuple(names.get(row, row) for row in found.rows)
    source, owner = names.get(found.source, ""), names.get(found.owner, GROUP if found.owner == GROUP else "")
    return Projection(found.issue, rows, found.mode, source, owner, found.scope, tuple(names[mark] for mark in found.names))


_RULES = RuleProjector()


class PeopleProjector:
    """Project for a living memory: the rows of every reading of the question together."""

    @property
    def name(self) -> str:
        """What determines its projections."""
        return f"people:{source_digest('members', 'people', 'project', 'mentions')}"

    def project(self, question: str, roster: tuple[str, ...]) -> Projection:
        """See `Projector`. A source-owner constraint holds only where the question has one reading."""
        first, *others = (reading.projection for reading in readings(question, roster))
        if not others:
            return first
        every = (first, *others)
        rows = tuple(dict.fromkeys(row for each in every for row in each.rows))
        names = tuple(dict.fromkeys(name for each in every for name in each.names))
        return Projection(first.issue, rows, first.mode, "", "", first.scope, names)
