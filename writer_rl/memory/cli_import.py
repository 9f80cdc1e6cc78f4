"""`writer-rl memory import`: a memory file from an exported document."""

from __future__ import annotations

import argparse
from argparse import Namespace

DESCRIPTION = """Make a memory file from a JSON document that `export` wrote. Chats are read by `remember`.

  {command} family.json --memory copy.db
"""


def add_options(options: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    options.add_argument("document", help="what export --format json wrote")
    options.add_argument("--memory", required=True, help="the new memory file")


def execute(chosen: Namespace) -> None:
    """Read the document, write the file."""
    from memory_env.datafile import read_json
    from memory_env.store.portable import import_json
    from memory_env.store.store import MemoryStore

    import_json(read_json(chosen.document), chosen.memory, chosen.document)
    with MemoryStore(chosen.memory, create=False) as store:
        counts = store.counts()
    print(f"{chosen.memory}: {counts['messages']} messages of {counts['members']} members, {counts['records']} records")
