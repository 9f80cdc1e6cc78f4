"""`writer-rl memory export`: a memory as JSON or Markdown."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Iterator

DESCRIPTION = """Write a memory as one document: JSON, which `import` reads back to an equal memory, or Markdown for people.

  {command} --memory family.db --output family.json
  {command} --memory family.db --format markdown --member Alice --output alice.md
"""


def add_options(options: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    options.add_argument("--memory", required=True, help="the memory file")
    options.add_argument("--format", choices=("json", "markdown"), default="json", help="of the document (json)")
    options.add_argument("--member", default="", help="only what this member said and what is recorded about or by them")
    options.add_argument("--output", metavar="FILE", help="where it goes; written over if it is there (the terminal)")


def execute(chosen: Namespace) -> None:
    """Write the document."""
    from memory_env.files import write_text
    from memory_env.store.portable import export_json
    from writer_rl.memory.memory import Memory
    from writer_rl.memory.plain_text import markdown

    with Memory(chosen.memory, create=False) as memory:
        if chosen.member:
            memory.chains(chosen.member)  # says who is there if this is nobody
        as_json = chosen.format == "json"
        lines = export_json(memory.store, chosen.member) if as_json else _lines(markdown(memory.store, chosen.member))
        if chosen.output is None:
            for piece in lines:
                print(piece, end="")
            return
        write_text(chosen.output, "".join(lines), private=True)
    print(f"{chosen.output}: written; only you may read it")


def _lines(pieces: Iterator[str]) -> Iterator[str]:
    return (f"{piece}\n" for piece in pieces)
