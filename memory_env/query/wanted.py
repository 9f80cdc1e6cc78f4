"""What a question to a living memory wants: the words that an answer must hold, and the kind of thing it must tell."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory_env.query.answer.clauses import KIN
from memory_env.query.people import QuestionReading, find_people
from memory_env.query.retrieve.terms import stem, terms, words
from memory_env.query.synonyms import canonical

_GENERIC_WORDS = """
    name names call called people person member members one thing things anything something think thinks thought feel feels
    feeling opinion view views say says said tell told mention mentioned talk talked write wrote know known ask asked
    announce announced suggest suggested propose proposed promise happen happened want kind sort type do done doing old new
    currently current now still many much long time day week month year exactly actually please really group chat favour
    according
"""
_GENERIC = frozenset(stem(word) for word in _GENERIC_WORDS.split())
_SAYER = re.compile(
    r"^\W*(?:what|when|where|why|how|which)\b.*?\b(?:did|does|do|has|had|is|was)\s+XX\s+(?:\w+ly\s+|first\s+|just\s+)?(?:say|said|saying|tell|told|telling|"
    r"write|written|announce|announced|suggest|suggested|propose|proposed|mention|mentioned|promise|promised|claim|claimed|ask|asked|report|reported)\b"
    r"|\baccording\s+to\s+XX\b|\bin\s+XX(?:'s|’s)?\s+(?:words|opinion|view)\b|\bXX(?:'s|’s)\s+(?:words|message|messages|announcement|suggestion|proposal)\b",
    re.IGNORECASE,
)
_TELLS = {
    "time": re.compile(r"^\W*(?:and\s+|so\s+)?(?:when|what\s+(?:time|day|date|month|year)|on\s+(?:what|which)\s+(?:day"
        r"|date)|since\s+when|how\s+soon)\b|\b(?:birthday|date)\b\W*$", re.I),
    "place": re.compile(r"^\W*(?:and\s+|so\s+)?(?:where|(?:in|at|to|from)\s+(?:what|which)|which\s+(?:city|town|country"
        r"|street|place))\b|\baddress\b", re.I),
    "number": re.compile(r"^\W*(?:how\s+(?:much|many|old|long|far|tall|big)|what\s+(?:is\s+the\s+)?(?:price|rent|age"
        r"|number|cost))\b", re.I),
}  # fmt: skip
_SAYS = {
    "time": re.compile(
        r"\d|\b(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|monday|tuesday"
        r"|wednesday|thursday|friday|saturday|sunday|today|tomorrow|tonight|yesterday|weekend|morning|afternoon|evening|noon|midnight|spring|summer|autumn"
        r"|winter|christmas|easter|next|last|week|month|year|soon|o'clock)\b",
        re.I,
    ),
    "place": re.compile(r"\b(?:in|at|to|near|on|from|by|opposite|behind|next to|around|into|via)\s+(?:the\s+|a\s+)?[A-Z]"),
    "some place": re.compile(r"\b(?:in|at|to|near|from|behind|next to|into)\s+\w|\b(?:home|abroad|upstairs|downtown"
        r"|here)\b", re.I),
    "number": re.compile(
        r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|none"
        r"|couple|dozen|half)\b",
        re.I,
    ),
}  # fmt: skip
_NEGATED = re.compile(r"\b(?:not|never|no longer)\b|n['’]t\b", re.IGNORECASE)
_IDENTITY = re.compile(
    r"^\W*(?:so\s+|and\s+)?(?:who(?:'s|\s+is|\s+are|\s+was)?|tell\s+me\s+about|what\s+do\s+(?:you|we)\s+know\s+about|describe)\s*XX\W*$",
    re.IGNORECASE,
)
_OCCUPATION = re.compile(
    r"^\W*what\s+(?:does|did|is)\s+XX\s+(?:do|doing)(?:\s+(?:for\s+(?:a\s+)?(?:living|work)|now|these\s+days|all\s+day))?\W*$",
    re.IGNORECASE,
)
_SUBJECT_NOUN = re.compile(
    r"\b(?:does|did)\s+(?:the\s+|a\s+|an\s+|my\s+|our\s+|your\s+|his\s+|her\s+|their\s+|XX(?:'s|’s)\s+)?(?P<noun>[a-z]+)\b"
)
_POSSESSED = re.compile(r"XX(?:'s|’s|['’])\s+(?:[a-z]+\s+){0,2}?(?P<noun>[a-z]+)\b")
_OWNER_OF = re.compile(r"\b(?P<noun>[a-z]+)\s+of\s+XX\b")
_HAS = re.compile(r"^\W*what\s+(?:\w+\s+)?(?:does|did|has)\s+XX\s+(?P<verb>have|own|got|want)\W*$", re.IGNORECASE)
_PERSON = re.compile(
    r"^\W*(?:and\s+|so\s+|but\s+)?(?:who|whom|whose|which\s+(?:member|person|one|of\s+(?:us|them)))\b", re.IGNORECASE
)
_ASKING = re.compile(r"\b(?:ask|asked|asking|wonder|question)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """`words`: canonical terms an answer must hold enough of; `must`: those it must hold whatever else. `sayer`: who has to have
    said it. `about`: whom it must be about ("" for anyone). `beside`: further members it must name. `kin`: it is about somebody
    of theirs ("Bob's brother"). `tells`: "time", "place", "number" or "". `identity`: who somebody is. `persons`: the answer is
    a person. `negated`: the question is. `verb`: "have" or "want" where the question holds no other word.

    Example: "Where does Bob's brother live?" -> Wanted(words={"liv", "brother"}, must={"brother"}, about="Bob",
    kin="brother", tells="place")
    """

    words: frozenset[str]
    must: frozenset[str] = frozenset()
    sayer: str = ""
    about: str = ""
    beside: tuple[str, ...] = ()
    kin: str = ""
    tells: str = ""
    identity: bool = False
    persons: bool = False
    negated: bool = False
    questions: bool = False
    verb: str = ""

    @property
    def enough(self) -> int:
        """How many of `words` an answer must hold: all of up to two, two of three, three of four or five."""
        return len(self.words) if len(self.words) <= 2 else -(-len(self.words) * 3 // 5)


def wanted(question: str, reading: QuestionReading) -> Wanted:
    """What a question wants under one reading of its names."""
    projection = reading.projection
    issue = projection.issue
    names = projection.names
    marked = _marked(question, reading)
    sayer, about = projection.source, projection.owner
    if _SAYER.search(marked) and names and not sayer:
        sayer = names[0]
    if sayer and not about:
        rest = [name for name in names if name != sayer]
        about = rest[0] if rest else ""
    elif not sayer and names:
        about = names[0]
    beside = tuple(name for name in names if name not in (sayer, about))
    found = frozenset(canonical(word) for word in _issue_words(issue))
    if _OCCUPATION.match(marked):
        found = frozenset({canonical("job")})
    noun = _POSSESSED.search(marked) or _OWNER_OF.search(marked)
    kin = noun["noun"] if noun and noun["noun"].lower() in KIN and not sayer else ""
    must = {canonical(word) for name in reading.unknown for word in words(name)}
    subject = _SUBJECT_NOUN.search(marked)
    if (
        subject
        and not names
        and subject["noun"] not in ("i", "we", "you", "he", "she", "they", "it", "everyone", "anyone", "everybody", "anybody")
    ):
        must |= {canonical(term) for term in terms(subject["noun"])} - _GENERIC
    if kin:
        must.add(canonical(kin))
    has = _HAS.match(marked)
    verb = {"want": "want"}.get(has["verb"].lower(), "have") if has else ""
    tells = next((kind for kind, pattern in _TELLS.items() if pattern.search(question)), "")
    return Wanted(
        found | must, frozenset(must), sayer, about, beside, kin, tells,
        identity=bool(_IDENTITY.match(marked)),
        persons=bool(_PERSON.match(question)), negated=bool(_NEGATED.search(question)), questions=bool(_ASKING.search(issue)),
        verb=verb,
    )  # fmt: skip


def kind_of(question: str) -> str:
    """What a question asks for: "time", "place", "number", "who", "what", "why", or "" for one of yes or no."""
    told = next((kind for kind, pattern in _TELLS.items() if pattern.search(question)), "")
    first = re.search(r"\b(who|whom|whose|what|which|why|how)\b", question[:60], re.IGNORECASE)
    return told or ({"whom": "who", "whose": "who", "which": "what"}.get(first[1].lower(), first[1].lower()) if first else "")


def answers_kind(text: str, tells: str) -> float:
    """How far a text tells a time, a place or a number, in [0, 1]; 0 where neither is asked."""
    if tells == "place" and not _SAYS["place"].search(text):
        return 0.5 * bool(_SAYS["some place"].search(text))
    return float(bool(tells and _SAYS[tells].search(text)))


def _issue_words(issue: str) -> list[str]:
    kept = set(terms(issue))
    return [word for word in words(issue) if stem(word) in kept and stem(word) not in _GENERIC]


def _marked(question: str, reading: QuestionReading) -> str:
    """The question with XX for every member's name."""
    parts, place = [], 0
    for named in find_people(question, tuple(sorted(reading.projection.names)) or ("",)):
        if named.members:
            parts += [question[place : named.start], "XX"]
            place = named.end
    return "".join([*parts, question[place:]])
