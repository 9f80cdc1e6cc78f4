"""A memory as text: Markdown for a file, and lines for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_env.state import MemoryState
from memory_env.store.store import MemoryStore
from writer_rl.memory.views import CurrentFact, MemberView, Version, all_members, conflicts, member_view, rejections

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&])")
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def visible(text: str) -> str:
    """`text` on one line, with what a terminal would act upon (escape sequences, direction marks) written as escapes.

    Example:
        visible("a\\x1b[2Jb") == "a\\\\x1b[2Jb"
    """
    return _UNSEEN.sub(lambda match: match.group().encode("unicode_escape").decode(), text.replace("\n", " ⏎ "))


def markdown(store: MemoryStore, member: str = "") -> Iterator[str]:
    """A memory in Markdown, a line at a time: of one `member`, or of all."""
    state = store.state()
    members = [member_view(state, member)] if member else all_members(state)
    yield f"# {_escaped(member or store.path.name)}\n"
    for view in members:
        yield from _member(view)
    yield "\n## Messages\n"
    session = ""
    for message in state.verbatim():
        if member and message.source != member:
            continue
        if message.session != session:
            session = message.session
            yield f"\n### {_escaped(session)}\n"
        yield f"- `{message.entry_id}` **{_escaped(message.source)}**, {_escaped(message.ts)}: {_escaped(message.content)}"


def _member(view: MemberView) -> Iterator[str]:
    said = f", {view.messages} messages from {_escaped(view.first)} to {_escaped(view.last)}" if view.messages else ""
    yield f"\n## {_escaped(view.name)}\n\n{view.facts} facts{said}"
    for row in view.rows:
        yield f"\n### {_escaped(row.layer)}\n"
        for fact in row.facts:
            again = f", said {fact.count} times, last {_escaped(fact.last_seen)}" if fact.count > 1 else ""
            yield f"- {_version(fact.current, view.name)}{again}"
            yield from _behind(fact.current, "  ")
            for version in reversed(fact.earlier):
                yield f"  - before: {_version(version, view.name)}"
                yield from _behind(version, "    ")


def _behind(version: Version, indent: str) -> Iterator[str]:
    for said in version.behind:
        yield f"{indent}- from **{_escaped(said.speaker)}**, {_escaped(said.ts)}: {_escaped(said.content)}"


def _version(version: Version, owner: str) -> str:
    by = f", said by {_escaped(version.source)}" if version.source != owner else ""
    return f"{_escaped(version.content)} ({_escaped(version.ts)}{by}, `{version.entry_id}`)"


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", visible(text))


def person_lines(view: MemberView) -> Iterator[str]:
    """A member's facts by layer, for a terminal."""
    if not view.facts:
        yield visible(f"nothing is recorded about {view.name}")
    for row in view.rows:
        yield f"{row.layer}:"
        for fact in row.facts:
            yield from _fact_lines(fact, view.name)


def _fact_lines(fact: CurrentFact, owner: str, behind: bool = False) -> Iterator[str]:
    current = fact.current
    by = "" if current.source == owner else f", said by {current.source}"
    again = f", said {fact.count} times, last {fact.last_seen}" if fact.count > 1 else ""
    yield visible(f"  {current.content}  ({current.ts}{by}{again})")
    for version in (current, *reversed(fact.earlier)):
        if version is not current:
            yield visible(f"    before: {version.content}  ({version.ts})")
        for said in version.behind if behind else ():
            yield visible(f"      from {said.speaker} @ {said.ts}: {said.content}")


def memory_lines(store: MemoryStore, state: MemoryState) -> Iterator[str]:
    """A whole memory for a terminal: every member's facts, what may conflict, what was rejected."""
    for view in all_members(state):
        said = f"{view.messages} messages, {view.first} to {view.last}; " if view.messages else ""
        yield visible(f"== {view.name}: {said}{view.facts} facts")
        for row in view.rows:
            yield f"{row.layer}:"
            for fact in row.facts:
                yield from _fact_lines(fact, view.name, behind=True)
        for conflict in conflicts(view):
            yield visible(f"  may conflict: {conflict.first.content} / {conflict.second.content}")
    for rejected in rejections(store):
        yield visible(f"rejected at position {rejected.position} ({rejected.ts}): {'; '.join(rejected.reasons)}")
