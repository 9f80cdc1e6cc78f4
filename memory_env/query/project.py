"""Project(q, roster) of Eq. 4, by rules: which rows a question needs, for which issue, at which time, from which source."""

from __future__ import annotations

import re
from typing import Protocol

from memory_env.query.asked import asked_clause
from memory_env.query.mentions import Mention, find_mentions
from memory_env.query.protocol import Projection
from memory_env.query.source_digest import source_digest
from memory_env.records import GROUP

_EVERYONE = re.compile(
    r"\b(?:every|each)\s+(?:\w+\s+){0,3}?(?:member|person|participant|one|speaker|friend|colleague|player|of\s+them)\w*\b"
    r"|\b(?:each|every)\s+(?:\w+\s+)?member'?s\b|\beveryone\b|\beverybody\b|\bper[- ](?:member|person)\b|\beach\s+of\b"
    r"|\ball\s+(?:of\s+)?(?:the\s+|its\s+|our\s+)?(?:\w+\s+){0,2}?(?:members|participants|people|persons|speakers|friends)\b"
    r"|\bmember\s+by\s+member\b|\b(?:members|people)\b.*\b(?:individually|respectively)\b",
    re.IGNORECASE,
)
_SOMEONE = re.compile(
    r"\bwho(?:se|m)?\b|\bwhich\s+(?:\w+\s+){0,2}?(?:member|members|person|people|participant|speaker|friend|one|two|of\s+them)\b"
    r"|\bwhat\s+member\b|\banyone\b|\banybody\b|\bsomeone\b|\bsomebody\b|\bone\s+(?:specific\s+)?member\b|\bnobody\b|\bno\s+one\b",
    re.IGNORECASE,
)
_GROUP = re.compile(
    r"\b(?:the|this|our|their)\s+(?:whole\s+|entire\s+)?(?:group|team|family|club|band|crew|collective|class|committee|chat|members)\b"
    r"|\bgroup(?:'s)?\s+(?:\w+\s+)?(?:decision|norm|rule|plan|consensus|expectation|agreement|convention|habit)"
    r"|\b(?:decision|decisions|decided?|agreed?|agreement|consensus|norm|norms|collectively|together|unanimous\w*|relationship)\b"
    r"|\bthey\s+(?:all\s+)?(?:decide|agree|plan|choose|settle)\w*|\b(?:house\s+)?rules?\b|\bexception\w*\b",
    re.IGNORECASE,
)
_FULL = re.compile(
    r"\b(?:used\s+to|previous(?:ly)?|former(?:ly)?|original(?:ly)?|initial(?:ly)?|at\s+first|in\s+the\s+beginning|at\s+the\s+start|earlier"
    r"|over\s+time|across\s+(?:the\s+)?sessions|evolv\w*|evolution|histor(?:y|ies|ical\w*)|timeline|turning\s+point|no\s+longer|anymore|any\s+more"
    r"|changed?\s+(?:his|her|their|its)\s+mind|shift\w*|progress(?:ed|ion)|how\s+(?:has|have|did)\b.*\bchang\w*|what\s+changed|change[sd]?\s+in"
    r"|changed?\s+(?:from|over|since|between)|what\s+(?:\w+\s+)?changes?|switch(?:ed|ing)?\s+from|first\s+(?:say|said|plan\w*|want\w*|think|choice|version|stance|position|opinion))\b"
    r"|\bbefore\b(?=\s*(?:[?.,;]|$|that\b|this\b|then\b|it\b|chang\w*|(?:the|this|that|any)\s+(?:\w+\s+)?(?:change|switch|update)|switch\w*|mov\w*|becom\w*|he\b|she\b|they\b|settl\w*))"
    r"|\bbefore\s+(?:\w+\s+){0,2}\w+(?=\s*[?.]?$)",
    re.IGNORECASE,
)
_VIEW = (
    r"(?:views?|opinions?|impressions?|perceptions?|observations?|assessments?|take|beliefs?|think\w*|thought|feels?|felt|says?|said|saying|tell\w*|told"
    r"|reports?|reported|believes?|believed|describ\w+|sees?|saw|observ\w+|notic\w+|mention\w*|claim\w*|perceiv\w+|remark\w*|comment\w*|knows?|knew"
    r"|stat\w+|share[sd]?|hear[d]?|relay\w*|pass(?:ed)?\s+on|appreciat\w+|admir\w+|complain\w*|credit\w*|praise[sd]?)"
)
_VIEW_BETWEEN = re.compile(rf"^(?:'s|’s|'|’)?\s*(?:\w+\s+){{0,3}}?{_VIEW}\b", re.IGNORECASE)
_ABOUT = re.compile(
    r"\b(?:of|about|on|regarding|concerning|that|as|in|with|for|toward|towards|how|whether|what|where|when)\s*(?:the\s+)?$",
    re.IGNORECASE,
)
_DIRECT = re.compile(
    r"\b(?:believes?|describ\w+|sees?|observ\w+|notic\w+|perceiv\w+|thinks?|says?|said|admir\w+|appreciat\w+|praise[sd]?|knows?|about)\s*$",
    re.IGNORECASE,
)
_ACCORDING = re.compile(
    r"\b(?:according\s+to|in\s+the\s+(?:eyes|view|opinion|words)\s+of|from\s+the\s+perspective\s+of)\s*$", re.IGNORECASE
)


# Words that say when, of whom or in which form, not what about.
_CUES = re.compile(
    r"\b(?:after|before|since|despite)\s+(?:all|the|any|that|this|it)?\s*(?:last|latest|recent|first|final)?\s*(?:changes?|updates?|switch|changed|switched)\b"
    r"|\bhow\s+(?:has|have|did|does|do)\b|\bchang(?:e|es|ed|ing)\b|\bover\s+time\b|\b(?:current|previous|former|original|initial|recent)(?:ly)?\b"
    r"|\b(?:now|today|nowadays|at\s+first|at\s+the\s+moment|at\s+present|in\s+the\s+end|latest|used\s+to)\b"
    r"|^\W*(?:please\s+)?(?:name|list|tell\s+(?:me|us)|describe|give|state|say|summari[sz]e|explain)\b(?:\s+(?:me|us))?"
    r"|\b(?:members?|person|people|participants?|everyone|everybody)\b(?:'s|’s)?"
    r"|\b(?:the|this|our)\s+(?:whole\s+|entire\s+)?(?:group|team|chat)\b(?:'s|’s)?",
    re.IGNORECASE,
)


class Projector(Protocol):
    """Compiles a question and a roster into query constraints; sees no memory and no answer candidates."""

    name: str

    def project(self, question: str, roster: tuple[str, ...]) -> Projection: ...


class RuleProjector:
    """Deterministic Project.

    Examples, roster (Alice, Bob): "What does every person drink?" -> rows (Alice, Bob); "What is the final decision?" -> rows
    (GROUP,); "Alice's view of Bob" -> rows (Bob,), source Alice, owner Bob; "What did Bob think before?" -> rows (Bob,),
    mode full. A question that names nobody and no group is looked up in every row ("ANY": the best row answers).
    """

    @property
    def name(self) -> str:
        return f"rules:{source_digest('asked', 'mentions', 'project')}"

    def project(self, question: str, roster: tuple[str, ...]) -> Projection:
        asked = asked_clause(question)
        mentions = find_mentions(asked, roster) or find_mentions(question, roster)
        names = tuple(dict.fromkeys(mention.name for mention in mentions))
        source, owner = _source_and_owner(asked, find_mentions(asked, roster))
        group = bool(_GROUP.search(asked))
        someone = bool(_SOMEONE.search(asked))
        if source and owner:
            rows, scope = (owner,), "names"
        elif _EVERYONE.search(asked):
            rows, scope = roster + ((GROUP,) if group else ()), "ALL"  # type: ignore[assignment]
        elif names:
            rows, scope = names + ((GROUP,) if group or someone or len(names) > 1 else ()), "names"  # type: ignore[assignment]
        elif group and not someone:
            rows, scope = (GROUP,), "GROUP"
        else:
            rows, scope = (*roster, GROUP), "ANY"  # type: ignore[assignment]
        mode = "full" if _FULL.search(asked) else "head"
        issue = " ".join(_CUES.sub(" ", _without(asked, find_mentions(asked, roster))).split())
        return Projection(issue, rows, mode, source, owner, scope, names)


def _source_and_owner(question: str, mentions: tuple[Mention, ...]) -> tuple[str, str]:
    """The (source, owner) constraint of "A's view of B", "what does A think about B", "according to A, ... B ...".

    ("", "") for anything else.
    """
    for index, mention in enumerate(mentions):
        others = [other for other in mentions[index + 1 :] if other.name != mention.name]
        if _ACCORDING.search(question[: mention.start]):
            rest = others or [other for other in mentions[:index] if other.name != mention.name]
            return (mention.name, rest[0].name) if rest else ("", "")
        if others:
            between = question[mention.end : others[0].start]
            if _VIEW_BETWEEN.match(between) and (_ABOUT.search(between) or _DIRECT.search(between)):
                return mention.name, others[0].name
            if re.fullmatch(r"(?:'s|’s)?\s+(?:relationship|bond|friendship)\s+(?:with|to)\s+", between, re.IGNORECASE):
                return "", ""
    return "", ""


def _without(question: str, mentions: tuple[Mention, ...]) -> str:
    """The question without the members' names and their possessive endings, white space collapsed."""
    kept, place = [], 0
    for mention in mentions:
        kept.append(question[place : mention.start])
        place = mention.end
        if question[place : place + 2] in ("'s", "’s"):
            place += 2
    kept.append(question[place:])
    return " ".join("".join(kept).split())
