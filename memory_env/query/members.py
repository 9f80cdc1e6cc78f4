"""The members of a memory, with the names that they bore before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


class Members(tuple[str, ...]):
    """Names as a roster has them, and `former`: pairs (former name, member).

    Equal, hashed and shown like the plain tuple of its names where nobody was renamed.

    Example:
        Members.of(["Ann", "Robert"], {"Robert": ["Bo"]}).former == (("Bo", "Robert"),)
    """

    former: tuple[tuple[str, str], ...]

    def __new__(cls, names: Iterable[str] = (), former: tuple[tuple[str, str], ...] = ()) -> Members:
        made = super().__new__(cls, names)
        made.former = former
        return made

    @classmethod
    def of(cls, names: Iterable[str], former: Mapping[str, Sequence[str]]) -> Members:
        """`former`: the earlier names of members; of people who are not among `names` none are kept."""
        kept = tuple(names)
        return cls(kept, tuple((old, name) for name in kept for old in former.get(name, ()) if old != name))

    def __getnewargs__(self) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        return tuple(self), self.former

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, other) is True and self.former == former_of(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self), self.former)) if self.former else tuple.__hash__(self)

    def __repr__(self) -> str:
        return f"Members({tuple(self)!r}, {self.former!r})" if self.former else repr(tuple(self))


def former_of(roster: object) -> tuple[tuple[str, str], ...]:
    """Pairs (former name, member) of a roster; none of a plain tuple."""
    return roster.former if isinstance(roster, Members) else ()


def full_name(name: str, roster: tuple[str, ...]) -> str:
    """A member's name with the former ones: "Robert (formerly Bo)"."""
    old = [each for each, member in former_of(roster) if member == name]
    return f"{name} (formerly {', '.join(old)})" if old else name
