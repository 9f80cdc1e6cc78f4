"""A memory as one HTML page that needs nothing else: no script, no link to anywhere, every text escaped."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from memory_env.state import MemoryState
from memory_env.store.store import MemoryStore
from writer_rl.memory.views import all_members, conflicts, rejections


def page(store: MemoryStore, state: MemoryState, as_of: str = "") -> str:
    """The page of a memory; `state` may be that of an earlier time, which `as_of` then names."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    members = all_members(state)
    return environment.get_template("page.jinja").render(
        title=store.path.name,
        counts={
            "messages": len(state.verbatim()),
            "members": len(state.roster),
            "records": len(state.derived()),
            "edges": len(state.edges()),
        },
        as_of=as_of,
        members=members,
        conflicts={member.name: conflicts(member) for member in members},
        rejected=list(rejections(store)),
    )
