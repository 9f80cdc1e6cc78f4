"""Questions that call a member by a name they no longer bear."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_env.query.mentions import AMBIGUOUS
from memory_env.query.people import find_people


@dataclass(frozen=True, slots=True)
class Called:
    """A question as it is asked of the memory, and who is meant by a former name in it ("" where nobody is).

    Example: Called("Where does Robert live?", "Bo is now called Robert")
    """

    question: str
    note: str = ""


def as_called_now(question: str, former: Mapping[str, Sequence[str]], roster: tuple[str, ...]) -> tuple[Called, ...]:
    """The question with former names as they are now; both readings where another member bears such a name today.

    Args:
        former: the earlier names of each member, by the name that is used now.

    Example:
        as_called_now("Where does Bo live?", {"Robert": ["Bo"]}, ("Ann", "Robert"))
        == (Called("Where does Robert live?", "Bo is now called Robert"),)
    """
    borne = {former_name: name for name, names in former.items() for former_name in names}
    people = find_people(question, roster)
    meant: list[_Meant] = []
    for old in sorted(borne, key=lambda name: (-len(name), name)):
        for match in re.finditer(rf"(?<!\w){re.escape(old)}(?!\w)", question, re.IGNORECASE):
            start, end = match.span()
            named = [person for person in people if person.start < end and start < person.end]
            found = any(borne[old] in person.members for person in named)  # "Bob" is found as "Bob Lee" without help
            a_word = old.lower() in AMBIGUOUS and not named and not match.group()[:1].isupper()  # as "will"
            if not found and not a_word and not any(start < each.end and each.start < end for each in meant):
                meant.append(_Meant(start, end, old, borne[old], any(person.members for person in named)))
    if not meant:
        return (Called(question),)
    replaced = question
    for each in sorted(meant, key=lambda each: -each.start):
        replaced = replaced[: each.start] + each.now + replaced[each.end :]
    notes = dict.fromkeys(f"{each.old} is now called {each.now}" for each in sorted(meant, key=lambda each: each.start))
    then = Called(replaced, "; ".join(notes))
    return (Called(question), then) if any(each.shared for each in meant) else (then,)


@dataclass(frozen=True, slots=True)
class _Meant:
    start: int
    end: int
    old: str
    now: str
    shared: bool
    """Whether another member is called so today."""
