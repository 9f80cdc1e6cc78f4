"""A deterministic, strict judge: every item under the right person, nothing wrong beside it, no answer that lists everything."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory_env.query.answer.offline_answer import option_texts
from memory_env.query.protocol import Answer, JudgeError, Question, Verdict
from memory_env.query.retrieve.terms import terms
from memory_env.query.source_digest import source_digest
from memory_env.query.statements import Statement, is_absent, parse, sentences

# An answer may say this much more than it was asked for (statements and content terms per person); beyond, it lists everything.
_EXTRA_STATEMENTS = 2
_TERMS_PER_PERSON = 40
# Without a rubric: the share of a gold sentence's terms that an answer must hold.
_COVERED = 0.6
_NOTHING = "nothing"
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Item:
    """What a right answer says of `who` ("" = under any name); text "" = `who` is the answer; "nothing" = nothing is known.

    Example: Item("Ana", "olives").
    """

    who: str
    text: str


@dataclass(frozen=True, slots=True)
class Rubric:
    """`items` must all be said (where the question has temporal anchors, in their order per person); none of `wrong` may be."""

    items: tuple[Item, ...]
    wrong: tuple[Item, ...] = ()


class OfflineJudge:
    """Judges by the question's rubric, else by the content words of its gold answer; s_q is the fraction of items present.

    A wrong person, an outdated or otherwise wrong value, or more statements than asked for make the binary verdict 0.
    """

    @property
    def fingerprint(self) -> Mapping[str, str]:
        return {"judge": f"offline:{source_digest('offline_judge', 'statements', 'terms')}"}

    def judge(self, question: Question, answer: Answer) -> Verdict:
        options = option_texts(question.options)
        if options and question.correct_option:
            return _judge_option(question.correct_option, options, answer)
        rubric = rubric_of(question)
        if rubric is not None:
            return _judge_rubric(rubric, parse(answer.text), ordered=bool(question.temporal_anchors))
        if not question.answer.strip():
            raise JudgeError("the question has neither a rubric nor a gold answer", question_id=question.id)
        return _judge_gold(question, parse(answer.text))


def rubric_of(question: Question) -> Rubric | None:
    """The rubric a corpus question carries under `rubric`; None if it has none.

    Raises JudgeError for one without items or of another shape.
    """
    fields = question.extra.get("rubric")
    if fields is None:
        return None
    try:
        items, wrong = (
            tuple(Item(str(each.get("who", "")), str(each.get("text", ""))) for each in fields.get(part, ()))
            for part in ("items", "wrong")
        )
    except AttributeError:
        raise JudgeError("rubric must hold `items` and `wrong`, lists of {who, text}", question_id=question.id) from None
    if not items:
        raise JudgeError("rubric has no items", question_id=question.id)
    return Rubric(items, wrong)


def _judge_option(correct: str, options: Mapping[str, str], answer: Answer) -> Verdict:
    """Exact option match: the letter, or where none is given, the option's exact text."""
    chosen = answer.option or _option_of(options, answer.text)
    right = chosen == correct
    return Verdict(right, float(right), f"chose {chosen or 'nothing'}, correct is {correct}")


def _option_of(options: Mapping[str, str], text: str) -> str:
    stripped = text.strip()
    letter = re.fullmatch(r"\(?([A-Z])\)?(?:[.):]\s.*)?", stripped, re.DOTALL)
    if letter and letter[1] in options:
        return letter[1]
    same = [each for each, option in options.items() if terms(option) and terms(option) == terms(stripped)]
    return same[0] if len(same) == 1 else ""


def _judge_rubric(rubric: Rubric, statements: Sequence[Statement], ordered: bool) -> Verdict:
    statements = _attributed(statements, rubric)
    said = [each for each in statements if not each.absent]
    present = [_present(item, said, statements) for item in rubric.items]
    score = sum(present) / len(present)
    for wrong in rubric.wrong:
        if any(_under(wrong.who, each) and _holds(each.text, wrong.text) for each in said):
            return Verdict(False, 0.0, f"says what is wrong: {wrong.who}: {wrong.text}".strip())
    reason = _excess(rubric, said)
    if reason:
        return Verdict(False, 0.0, reason)
    if not all(present):
        missing = next(item for item, found in zip(rubric.items, present, strict=True) if not found)
        return Verdict(False, score, f"lacks {missing.who or 'anyone'}: {missing.text or 'as the answer'}")
    if ordered and not _in_order(rubric.items, said):
        return Verdict(False, score, "the order is wrong")
    return Verdict(True, 1.0, "all items present")


def _present(item: Item, said: Sequence[Statement], statements: Sequence[Statement]) -> bool:
    if item.text.strip().lower() == _NOTHING:
        return not any(_same(item.who, each.who) for each in said) and any(
            each.absent and _under(item.who, each) for each in statements
        )
    return any(_under(item.who, each) and _holds(each.text, item.text) for each in said)


def _excess(rubric: Rubric, said: Sequence[Statement]) -> str:
    """Why the answer says too much, or "". Persons who are themselves the answer must be exactly those of the rubric."""
    asked_for = {item.who.casefold() for item in rubric.items if not item.text}
    if asked_for:
        extra = [each.who for each in said if each.who.casefold() not in asked_for]
        if extra:
            return f"names {extra[0] or 'nobody'} too"
    for who in dict.fromkeys(each.who.casefold() for each in said):
        texts = [each.text for each in said if each.who.casefold() == who]
        wanted = sum(item.who.casefold() in (who, "") for item in rubric.items)
        if len(texts) > wanted + _EXTRA_STATEMENTS or sum(len(terms(text)) for text in texts) > _TERMS_PER_PERSON * max(
            1, wanted
        ):
            return f"lists too much about {who or 'nobody'}"
    return ""


def _in_order(items: Sequence[Item], said: Sequence[Statement]) -> bool:
    """Whether one person's items come in the rubric's order (within one statement any order is right)."""
    last: dict[str, int] = {}
    for item in items:
        if not item.text or item.text.strip().lower() == _NOTHING:
            continue
        places = [place for place, each in enumerate(said) if _under(item.who, each) and _holds(each.text, item.text)]
        later = [place for place in places if place >= last.get(item.who, 0)]
        if not later:
            return False
        last[item.who] = later[0]
    return True


def _attributed(statements: Sequence[Statement], rubric: Rubric) -> list[Statement]:
    """A sentence under nobody's name belongs to the one person of the rubric that it names."""
    people = _whole_names(item.who for item in (*rubric.items, *rubric.wrong))
    found = []
    for each in statements:
        named = {match[0] for match in people.finditer(_composed(each.text))} if not each.who else set()
        found.append(Statement(named.pop(), each.text) if len(named) == 1 else each)
    return found


def _judge_gold(question: Question, statements: Sequence[Statement]) -> Verdict:
    said = [each for each in statements if not each.absent]
    if is_absent(question.answer):
        right = not said
        return Verdict(right, float(right), "nothing is known" if right else "answers what is not known")
    gold = [sentence for sentence in sentences(question.answer) if terms(sentence)] or [question.answer]
    whole = [term for each in said for term in (*terms(each.who), *terms(each.text))]
    if len(whole) > max(_TERMS_PER_PERSON, 3 * len(terms(question.answer))):
        return Verdict(False, 0.0, "lists too much")
    known = set(terms(f"{question.question} {question.answer}"))
    stray = next((each.who for each in said if each.who and each.who != "GROUP" and not set(terms(each.who)) & known), "")
    if stray:
        return Verdict(False, 0.0, f"speaks of {stray}, who is neither in the question nor in the gold answer")
    present = [_covers(sentence, said, question.question) for sentence in gold]
    score = sum(present) / len(present)
    return Verdict(all(present), score, f"{sum(present)} of {len(present)} gold sentences covered")


def _covers(sentence: str, said: Sequence[Statement], question: str) -> bool:
    """Whether statements hold enough of a gold sentence; where it opens with a person's name, only that person's count."""
    subject = _subject(sentence, [each.who for each in said], question)
    said_of = set(terms(sentence)) - set(terms(subject)) or set(terms(sentence))
    wanted = said_of - set(terms(question)) or said_of
    held = {
        term
        for each in said
        if not subject or each.who in ("", "GROUP") or _same(each.who, subject)
        for term in (*terms(each.who), *terms(each.text))
    }
    return len(wanted & held) >= _COVERED * len(wanted)


def _subject(sentence: str, speakers: Sequence[str], question: str) -> str:
    """The name that a gold sentence opens with, of those that the answer speaks of or that begin so in the question."""
    people = [who for who in speakers if who and who != "GROUP"]
    longer = [found for who in people for found in re.findall(rf"(?<!\w){re.escape(who)}(?:\s+[A-Z]\w*)+", question)]
    opening = _whole_names([*people, *longer]).match(_composed(sentence))
    return opening[0] if opening else ""


def _whole_names(people: Iterable[str]) -> re.Pattern[str]:
    """Finds each of `people` as a whole name, the longest where one begins another: "Jo" is neither in "John" nor in "Jo Ann"
    if that is one of them, nor in "Jo-Ann", "O" not in "O'Hara"; scripts without spaces between words have no such border.
    """
    ordered = sorted({_composed(who) for who in people if who}, key=lambda who: (-len(who), who))
    bodies = [
        re.escape(who) if _UNSPACED.search(who) else rf"(?<!\w){re.escape(who)}(?!\w|[-.]\w|['’](?!s\b)\w)" for who in ordered
    ]
    return re.compile("|".join(bodies) or r"(?!)")


def _composed(text: str) -> str:
    """One Unicode form for what reads the same (NFC)."""
    return unicodedata.normalize("NFC", text)


def _under(who: str, statement: Statement) -> bool:
    return not who or _same(who, statement.who)


def _same(a: str, b: str) -> bool:
    return _composed(a).casefold() == _composed(b).casefold()


def _holds(statement: str, text: str) -> bool:
    return set(terms(text)) <= set(terms(statement))
