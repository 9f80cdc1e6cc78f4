"""Whose words a message holds: its speaker's own, or words that they quote, forward, paste or put in somebody's mouth."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory_env.query.people import find_people

SAYING = (
    r"(?:says?|said|saying|tells?|told|thinks?|thought|believes?|believed|claims?|claimed|wrote|writes|mentioned|mentions|reckons|insists|insisted"
    r"|heard|promised|announced|admitted|texted|posted|replied|answered|asked|goes|went|was like|is like)"
)
_REPORTED = re.compile(rf"\b{SAYING}\b(?:\s+(?:me|us|that|to me|everyone|everybody))*\W*", re.IGNORECASE)
_QUOTED = re.compile(
    r"[\"“„«「『](?P<text>[^\"”“»」』]{3,})[\"”“»」』]|(?<!\w)['‘](?P<single>[^'’]{3,}(?:['’]\w[^'’]*)*)['’](?!\w)"
)
_FORWARDED = re.compile(
    r"^[\s>*_–—-]*(?:\[\s*forwarded(?:\s+from\s+(?P<from>[^\]]*))?\s*\]"
    r"|(?:forwarded(?:\s+message)?|fwd?|fw)(?:\s+from\s+(?P<other>[^:\n]+?))?\s*(?:[:\]]|[–—-]{2,}|\n)|[↪➡➥⤷⏩]\ufe0f?)\s*",
    re.IGNORECASE,
)
_AUTHOR = re.compile(r"^from\b\s*:?\s*(?P<who>[^:\n]{1,40}?)\s*(?::\s|\n|$)\s*", re.IGNORECASE)
_TIME = r"[\d./: -]*\d{1,2}[:.]\d\d(?:[:.]\d\d)?\s*(?:[ap]\.?m\.?)?"
_HEADING = re.compile(
    rf"^\W*(?P<who>[^\W\d_][^\d:,\n\[(<>]{{0,38}}?)\s*(?:(?:[,\[(<@–-]\s*|\s){_TIME}\s*[\])>]?\s*:?|:)\s*$", re.IGNORECASE
)
_PASTED = re.compile(
    r"^\W*(?:\[[^\]]{0,40}\]\s*)?(?P<who>[^:\n,.!?]{1,40}?)(?:,\s*\[[^\]]*\]|\s*\(\d{1,2}:\d\d\)|\s*@[^:]*)?:\s+(?=\S)"
)
_NICK = re.compile(r"^\s*(?:\[?[\d:. -]*\d{1,2}:\d\d(?::\d\d)?\]?\s*)?<\s*[@+~&%]?(?P<who>[^<>\n]{1,40})>\s+(?=\S)")
_LABEL = re.compile(r"^(?P<bullet>\s*[-*•–·]\s+)?(?P<label>[^:\n]{2,60}?):\s+(?=(?:i|i['’]\w+|my|we)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Passage:
    """Part of a message in one voice. `author` is the member whose words they are, "" for an unknown; `own`: the speaker's.

    Example: "Zoltan, 10:02\\nI will pay" by Yara -> Passage("I will pay", author="Zoltan", own=False).
    """

    text: str
    author: str
    own: bool


def passages(text: str, speaker: str, roster: tuple[str, ...]) -> list[Passage]:
    """A message of `speaker` voice by voice, line by line; of each line what stands in quotation marks last."""
    forwarded = _FORWARDED.match(text)
    if forwarded:
        rest, who = text[forwarded.end() :], forwarded["from"] or forwarded["other"] or ""
        named = _AUTHOR.match(rest)
        if named:
            rest, who = rest[named.end() :], who or named["who"]
        return [Passage(rest, member_called(who, roster), False)]
    found: list[Passage] = []
    author, own = speaker, True
    for line in text.splitlines():
        heading = _HEADING.match(line)
        called = member_called(heading["who"], roster) if heading else ""
        if called:
            author, own = called, called == speaker
        elif line.lstrip().startswith(">"):
            found.append(Passage(line.lstrip("> "), "", False))
        else:
            rest, quotes = _without_quotes(line, roster)
            found += [Passage(rest, author, own), *quotes]
    return found


def put_in_a_mouth(sentence: str, speaker: str, roster: tuple[str, ...]) -> Passage | None:
    """The words after a label that makes them somebody else's: "Bob: I hate olives", "<bob> I ...", "Bob at work: I ...".

    A label that is a member's name may be theirs that was pasted, or words to them; either way not the speaker's own.
    """
    for pattern in (_NICK, _PASTED):
        pasted = pattern.match(sentence)
        author = member_called(pasted["who"], roster) if pasted else ""
        if pasted and (author or pattern is _NICK) and author != speaker:
            return Passage(sentence[pasted.end() :], author, False)
    label = _LABEL.match(sentence)
    if label:
        others = [named for named in find_people(label["label"], roster) if speaker not in named.members]
        if others or (label["bullet"] and member_called(label["label"], roster) != speaker):
            return Passage(sentence[label.end() :], "", False)
    return None


def member_called(name: str, roster: tuple[str, ...]) -> str:
    """The member that a whole text names; "" for none, several, or a text that says more."""
    name = name.strip()
    people = find_people(name, roster) if name else ()
    whole = people and people[0].start == 0 and people[0].end == len(name)
    return people[0].members[0] if whole and len(people[0].members) == 1 else ""


def _without_quotes(line: str, roster: tuple[str, ...]) -> tuple[str, list[Passage]]:
    """A line without the words in quotation marks, and those as words of whoever the line says said them."""
    quotes: list[Passage] = []
    kept, place = [], 0
    for match in _QUOTED.finditer(line):
        words = match["text"] or match["single"]
        if len(words.split()) < 3 and words.isascii():
            continue
        around = line[: match.start()] + " " + line[match.end() :]
        said = [named for named in find_people(around, roster) if len(named.members) == 1]
        reported = _REPORTED.search(around)
        author = said[0].members[0] if said and (reported or len(said) == 1) else ""
        quotes.append(Passage(words, author, False))
        kept.append(line[place : match.start()])
        place = match.end()
    return "".join([*kept, line[place:]]), quotes
