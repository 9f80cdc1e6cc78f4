"""What a question to a living memory wants: the words that an answer must hold, and the kind of thing it must tell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from memory_env.query.answer.clauses import KIN
from memory_env.query.people import Reading
from memory_env.query.retrieve.terms import stem, terms, words

# Words that mean the same for a question's purposes; the first of a line stands for all. English, and only what chats ask daily.
_SAME = """
    live move home address flat apartment reside based house moving
    job work profession occupation career employ employer workplace working
    mum mother mom mummy mama
    dad father daddy papa
    birthday born birth birthdate
    wedding marry marriage married marrying
    partner fiance fiancé fiancée boyfriend girlfriend husband wife engaged
    child children kid kids baby
    like love enjoy fond prefer favourite favorite adore liking favourites
    hate dislike detest loathe stand
    start begin began begun
    buy bought purchase
    go went gone going
    sell sold
    get got gotten
    eat ate eaten
    take took taken
    bring brought
    leave left
    meet met
    speak spoke spoken
    teach taught
    drive drove driven
    break broke broken
    lose lost
    find found
    win won
    pay paid cost price costs
    choose chose chosen
    allergic allergy allergies
    vegetarian veggie vegan
    phone mobile
    car vehicle van
    bike bicycle
    film movie
    holiday vacation
    quit resign resigned
    plan plans planning
"""
_GENERIC = frozenset(
    stem(word)
    for word in """name names call called people person member members one thing things anything something think thinks thought feel feels
    feeling opinion view views say says said tell told mention mentioned talk talked write wrote know known ask asked announce announced
    suggest suggested propose proposed promise happen happened want kind sort type do done doing old new currently current now still
    many much long time day week month year exactly actually please really group chat favour according""".split()
)
_SAYER = re.compile(
    r"^\W*(?:what|when|where|why|how|which)\b.*?\b(?:did|does|do|has|had|is|was)\s+XX\s+(?:\w+ly\s+|first\s+|just\s+)?(?:say|said|saying|tell|told|telling|"
    r"write|written|announce|announced|suggest|suggested|propose|proposed|mention|mentioned|promise|promised|claim|claimed|ask|asked|report|reported)\b"
    r"|\baccording\s+to\s+XX\b|\bin\s+XX(?:'s|’s)?\s+(?:words|opinion|view)\b|\bXX(?:'s|’s)\s+(?:words|message|messages|announcement|suggestion|proposal)\b",
    re.IGNORECASE,
)
_TELLS = {
    "time": re.compile(r"^\W*(?:and\s+|so\s+)?(?:when|what\s+(?:time|day|date|month|year)|on\s+(?:what|which)\s+(?:day|date)|since\s+when|how\s+soon)\b|\b(?:birthday|date)\b\W*$", re.I),
    "place": re.compile(r"^\W*(?:and\s+|so\s+)?(?:where|(?:in|at|to|from)\s+(?:what|which)|which\s+(?:city|town|country|street|place))\b|\baddress\b", re.I),
    "number": re.compile(r"^\W*(?:how\s+(?:much|many|old|long|far|tall|big)|what\s+(?:is\s+the\s+)?(?:price|rent|age|number|cost))\b", re.I),
}  # fmt: skip
_SAYS = {
    "time": re.compile(
        r"\d|\b(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|monday|tuesday"
        r"|wednesday|thursday|friday|saturday|sunday|today|tomorrow|tonight|yesterday|weekend|morning|afternoon|evening|noon|midnight|spring|summer|autumn"
        r"|winter|christmas|easter|next|last|week|month|year|soon|o'clock)\b",
        re.I,
    ),
    "place": re.compile(r"\b(?:in|at|to|near|on|from|by|opposite|behind|next to|around|into|via)\s+\w|\b(?:home|abroad|upstairs|downtown|here)\b", re.I),
    "number": re.compile(
        r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|none"
        r"|couple|dozen|half)\b",
        re.I,
    ),
}  # fmt: skip
_NEGATED = re.compile(r"\b(?:not|never|no longer)\b|n['’]t\b", re.IGNORECASE)
_IDENTITY = re.compile(r"^\W*(?:so\s+|and\s+)?(?:who(?:'s|\s+is|\s+are|\s+was)?|tell\s+me\s+about|what\s+do\s+(?:you|we)\s+know\s+about|describe)\s*XX\W*$", re.IGNORECASE)
_OCCUPATION = re.compile(r"^\W*what\s+(?:does|did|is)\s+XX\s+(?:do|doing)(?:\s+(?:for\s+(?:a\s+)?(?:living|work)|now|these\s+days|all\s+day))?\W*$", re.IGNORECASE)
_SUBJECT_NOUN = re.compile(r"\b(?:does|did)\s+(?:the\s+|a\s+|an\s+|my\s+|our\s+|your\s+|his\s+|her\s+|their\s+|XX(?:'s|’s)\s+)?(?P<noun>[a-z]+)\b")
_POSSESSED = re.compile(r"XX(?:'s|’s|['’])\s+(?:[a-z]+\s+){0,2}?(?P<noun>[a-z]+)\b")
_OWNER_OF = re.compile(r"\b(?P<noun>[a-z]+)\s+of\s+XX\b")
_HAS = re.compile(r"\b(?:does|did|has|have)\s+XX\s+(?:have|own|got)\b", re.IGNORECASE)
_PERSON = re.compile(r"^\W*(?:and\s+|so\s+|but\s+)?(?:who|whom|whose|which\s+(?:member|person|one|of\s+(?:us|them)))\b", re.IGNORECASE)
_ASKING = re.compile(r"\b(?:ask|asked|asking|wonder|question)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """`words`: canonical terms an answer must hold enough of; `must`: those it must hold whatever else. `sayer`: who has to have
    said it. `about`: whom it must be about ("" for anyone). `beside`: further members it must name. `kin`: it is about somebody
    of theirs ("Bob's brother"). `tells`: "time", "place", "number" or "". `identity`: who somebody is. `persons`: the answer is
    a person. `negated`: the question is.

    Example: "Where does Bob's brother live?" -> Wanted(words={"liv", "brother"}, must={"brother"}, about="Bob", kin="brother", tells="place")
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

    @property
    def enough(self) -> int:
        """How many of `words` an answer must hold: all of up to two, two of three, three of four or five."""
        return len(self.words) if len(self.words) <= 2 else -(-len(self.words) * 3 // 5)


@lru_cache(maxsize=1)
def _canon() -> dict[str, str]:
    table: dict[str, str] = {}
    for line in _SAME.strip().splitlines():
        first, *others = line.split()
        for word in (first, *others):
            table[word] = table[stem(word)] = stem(first)
    return table


def canonical(word: str) -> str:
    """A word's stem, or the stem of the word that stands for its like: canonical("moved") == canonical("lives")."""
    table = _canon()
    return table.get(word) or table.get(stem(word)) or stem(word)


def canonical_terms(text: str) -> frozenset[str]:
    """The canonical content terms of a text."""
    kept = set(terms(text))
    return frozenset(canonical(word) for word in words(text) if stem(word) in kept or word in _canon())


def holds(wanted: Iterable[str], said: frozenset[str]) -> int:
    """How many of the wanted terms a text's terms hold; "celebration" holds "celebrate", by its beginning."""
    return sum(term in said or any(_alike(term, other) for other in said) for term in wanted)


def _alike(a: str, b: str) -> bool:
    if len(a) < 5 or len(b) < 5 or not (a.isascii() and b.isascii()):
        return False
    shared = next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return shared >= 5 and shared >= 0.7 * max(len(a), len(b))


def wanted(question: str, reading: Reading) -> Wanted:
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
    if subject and not names and subject["noun"] not in ("i", "we", "you", "he", "she", "they", "it", "everyone", "anyone", "everybody", "anybody"):
        must |= {canonical(term) for term in terms(subject["noun"])} - _GENERIC
    if kin:
        must.add(canonical(kin))
    tells = next((kind for kind, pattern in _TELLS.items() if pattern.search(question)), "")
    return Wanted(
        found | must, frozenset(must), sayer, about, beside, kin, tells,
        identity=bool(_IDENTITY.match(marked)) or (bool(names) and not found | must),
        persons=bool(_PERSON.match(question)), negated=bool(_NEGATED.search(question)), questions=bool(_ASKING.search(issue)),
    )  # fmt: skip


def _issue_words(issue: str) -> list[str]:
    kept = set(terms(issue))
    return [word for word in words(issue) if stem(word) in kept and stem(word) not in _GENERIC]


def _marked(question: str, reading: Reading) -> str:
    """The question with XX for every member's name."""
    from memory_env.query.people import find_people

    parts, place = [], 0
    for named in find_people(question, tuple(sorted(reading.projection.names)) or ("",)):
        if named.members:
            parts += [question[place : named.start], "XX"]
            place = named.end
    return "".join([*parts, question[place:]])
