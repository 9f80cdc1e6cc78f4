"""The offline reader of a living memory: it quotes, and every quotation carries its true speaker.

English and literal: it finds statements that share the question's words, and reads who a statement is about from English
grammar. Questions in other words or languages want a language model. The frozen evaluation has a reader of its own
(`offline_answer`), whose rules belong to the embedded corpus.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memory_env.query.answer.clauses import KIN, STRANGER, Clause
from memory_env.query.answer.offline_answer import option_texts
from memory_env.query.answer.testimony import Testimony, testimonies
from memory_env.query.people import readings
from memory_env.query.protocol import Answer, Evidence, Question, blind
from memory_env.query.source_digest import source_digest
from memory_env.query.synonyms import canonical_terms, holds
from memory_env.query.wanted import Wanted, answers_kind, kind_of, wanted
from memory_env.records import GROUP, VERBATIM_UTYPE

NOT_RECORDED = "not recorded"
_RULES = ("clauses", "members", "people", "quoted", "reader", "testimony", "wanted", "terms")
_MOST = 3
# What makes one statement a better answer than another that holds as many of the question's words.
_RIGHT_KIND, _OWN_WORDS, _RECORD, _ASKED_BEFORE, _IN_A_QUESTION = 0.30, 0.05, 0.15, -0.10, -0.30
_INTRODUCES = re.compile(
    r"\b(?:i am|i['’]m|im|my name is)\b|^\W*[A-Z][\w ]*\b(?:is|was)\s+(?:\w+\s+)?(?:a|an|the|my|our|your|\w+['’]s)\b", re.I
)
# Verbs that are no search terms, since they help other verbs too ("I have to go").
_HAVING = {
    "have": re.compile(r"\b(?:have|has|had|['’]ve|own|owns|owned)\s+(?:got\s+)?(?!to\b|been\b|got\b|\w+ed\b)\w", re.I),
    "want": re.compile(r"\b(?:want|wants|wanted)\s+\w|\b(?:would|['’]d) like\b", re.I),
}


class Reader:
    """Answers in lines "Name: words", where the words are a message of that member, or a record about them.

    A name that several members bear, or bore before, is answered for each; a name that nobody bears is said to be unknown;
    where nothing fits, the answer is "not recorded". Questions are never quoted as answers. Deterministic; sees no gold answer.

    Example: "Where does Sam live?" -> Answer("Sam Lee: I live in Oslo\\nSam Roy: I live in Rome").
    """

    @property
    def fingerprint(self) -> Mapping[str, str]:
        """See `Answerer`."""
        return {"answerer": f"reader:{source_digest(*_RULES)}"}

    def answer(self, question: Question, evidence: Evidence) -> Answer:
        """See `Answerer`."""
        question = blind(question)
        statements = testimonies(evidence)
        options = option_texts(question.options)
        found: dict[str, list[Testimony]] = {}
        former: dict[str, str] = {}
        for reading in readings(question.question, evidence.roster):
            for want in _each(wanted(question.question, reading), reading.projection.names, evidence, question.question):
                chosen = _best(want, statements, evidence.projection.mode == "full")
                found.setdefault(_label(want, reading.unknown), []).extend(chosen)
                former |= dict(reading.former)
        if options:
            return _option(options, [each for chosen in found.values() for each in chosen])
        several = len(found) > 1
        lines: list[str] = []
        for label, chosen in found.items():
            renamed = f" ({former[label]} is now called {label})" if label in former else ""
            if not chosen:
                lines.append(f"{label}{renamed}: {NOT_RECORDED}" if label else NOT_RECORDED)
            lines += [f"{each.line}{renamed}" for each in chosen]
            if several and chosen and all(each.who != label for each in chosen) and label:
                lines[-len(chosen) :] = [f"{each.line} (about {label}){renamed}" for each in chosen]
        told = [line for line in dict.fromkeys(lines) if not line.endswith(NOT_RECORDED)]
        return Answer("\n".join(told if told and evidence.projection.scope == "ANY" else dict.fromkeys(lines)))


def _label(want: Wanted, unknown: Sequence[str]) -> str:
    """Under whose name nothing is recorded where nothing fits."""
    if unknown and not want.about and not want.sayer:
        return f"{unknown[0]} (no member has that name)"
    return want.sayer or want.about


def _each(want: Wanted, names: Sequence[str], evidence: Evidence, question: str) -> list[Wanted]:
    """The things wanted: one for each member where the question is about every member, or about several apart."""
    if evidence.projection.scope == "ALL" and not want.about and not want.sayer:
        return [replace(want, about=name) for name in evidence.roster]
    if want.beside and not want.sayer and not want.kin and " and " in question:
        together = replace(want, words=want.words)
        apart = [replace(want, about=name, beside=()) for name in names]
        return [together] if _best(together, testimonies(evidence), False) else apart
    return [want]


def _best(want: Wanted, statements: Sequence[Testimony], past: bool) -> list[Testimony]:
    """The statements that fit best, in the order in which they were said; of what replaces each other the last."""
    scored = [(score, each) for each in statements if (past or not each.older) and (score := _fit(want, each)) > 0]
    if not scored:
        return []
    top = max(score for score, _ in scored)
    near = [each for score, each in scored if score >= top - 0.12]
    records = [each for each in near if each.item.utype != VERBATIM_UTYPE]
    near = records or _first_hand(want, near)
    if want.tells and not past and not want.persons:
        near = near[-1:] if not records else records[-2:]
    return near[-_MOST:]


def _first_hand(want: Wanted, statements: list[Testimony]) -> list[Testimony]:
    """Without others' copies of a member's words where the member's own are there too."""
    own = [each for each in statements if any(part.own and _admits(want, part, each, False) for part in each.parts)]
    return own if any(each.said_by == want.about for each in own) else statements


def _fit(want: Wanted, statement: Testimony) -> float:
    """How well a statement answers, 0 where it does not: whether it is of the right people, and how many wanted words it
    holds."""
    record = statement.item.utype != VERBATIM_UTYPE
    if (
        want.sayer
        and statement.said_by != want.sayer
        and not (not record and any(part.subject == want.sayer and not part.own for part in statement.parts))
    ):
        return 0.0
    parts = [part for part in statement.parts if _admits(want, part, statement, record)]
    if not parts:
        return 0.0
    said = canonical_terms(" ".join(part.text for part in parts))
    if record and statement.item.owner != GROUP:
        said |= canonical_terms(statement.who)
    replies = statement.parts[0] in parts and _same_kind(want, statement)
    context = statement.context if replies else frozenset()
    own, held = holds(want.words, said), holds(want.words, said | context)
    if want.words:
        if held < want.enough or holds(want.must, said | context) < len(want.must):
            return 0.0
    elif not (want.sayer and want.about):
        introduced = want.identity and (record or any(_INTRODUCES.search(part.text) and not part.negated for part in parts))
        having = want.verb and any(_HAVING[want.verb].search(part.text) for part in parts)
        if not introduced and not having:
            return 0.0
    share = held / len(want.words) if want.words else 0.6
    if own < held:
        share += _ASKED_BEFORE
        if want.tells and not answers_kind(statement.parts[0].text, want.tells):
            return 0.0  # "Good question!"
    # "The flat is small. It is in Leeds": what follows tells of the same.
    told = [part.text for part in statement.parts if part in parts or not (part.other or part.subject or part.question)]
    share += _RIGHT_KIND * answers_kind(" ".join(told), want.tells)
    if any(part.question for part in parts):
        share += _IN_A_QUESTION
    return share + (_RECORD if record else 0.0) + (_OWN_WORDS if any(part.own for part in parts) else 0.0)


def _same_kind(want: Wanted, statement: Testimony) -> bool:
    """Whether the question that a message answers asked for what is asked now: a yes or no may hold anything."""
    now = want.tells or ("who" if want.persons else "")
    return not statement.asked or not now or statement.asked == now


def _admits(want: Wanted, part: Clause, statement: Testimony, record: bool) -> bool:
    """Whether a clause may answer at all: no question of the kind asked, no wish, and about whom the question is about."""
    if part.unreal or (part.question and not want.questions and not _told_in_asking(want, part)):
        return False
    if want.persons and not want.identity and part.negated != want.negated and not record:
        return False
    if any(name not in part.mentions and name not in (part.subject, statement.said_by, statement.who) for name in want.beside):
        return False
    about = want.about
    if not about:
        return True
    if want.sayer:
        return about in part.mentions or part.subject == about or (record and statement.item.owner == about)
    low = part.other.lower()
    if want.kin:
        return (part.of == about and want.kin in low.split()) or (about in part.mentions and want.kin in part.text.lower())
    if part.subject == about:
        return True
    if part.of == about and not KIN & set(low.split()):
        return bool(canonical_terms(low) & want.words)
    if record and statement.item.owner == about:
        return part.other in ("", "left out")  # "plays the oboe", in the row of its owner
    if part.question:
        return statement.said_by == about and bool(re.search(r"\b(?:my|our)\b", part.text, re.IGNORECASE))
    if statement.said_by == about and statement.context and part is statement.parts[0]:
        # Asked about their cat, they say "Minka is here": a reply about what the question was about.
        told = not part.subject and low not in ("you", "they", "left out", STRANGER) and not KIN & set(low.split())
        return told and holds(want.words, statement.context) == len(want.words)
    return False


def _told_in_asking(want: Wanted, part: Clause) -> bool:
    """Whether a question tells a time, place or number beside what it asks: "Who comes to my party on 4 May?"."""
    asks = kind_of(part.text)
    return bool(want.tells and asks and asks != want.tells and answers_kind(part.text, want.tells) == 1.0)


def _option(options: Mapping[str, str], statements: Sequence[Testimony]) -> Answer:
    """The option whose words the chosen statements hold best; none where none or several do."""
    said = frozenset().union(*(canonical_terms(f"{each.who} {each.text}") for each in statements)) if statements else frozenset()
    share = {letter: holds(canonical_terms(text), said) / max(1, len(canonical_terms(text))) for letter, text in options.items()}
    best = max(share.values(), default=0.0)
    winners = [letter for letter, value in share.items() if value == best]
    return Answer(options[winners[0]], winners[0]) if best > 0 and len(winners) == 1 else Answer(NOT_RECORDED)
