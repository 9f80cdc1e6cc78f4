"""`writer-rl memory view`: a memory as one HTML page, or in the terminal."""

from __future__ import annotations

import argparse
from argparse import Namespace
from pathlib import Path

DESCRIPTION = """Look at a memory: members, what is recorded about them with its history and the messages behind it, what may
conflict, and what a Writer wrote that was not taken.

  {command} family.db                        # writes family.html beside it
  {command} family.db --output page.html
  {command} family.db --terminal             # here, instead of a page
"""


def add_options(options: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    options.add_argument("memory", help="the memory file")
    options.add_argument("--output", metavar="FILE", help="the page (the memory's name with .html); written over if it is there")
    options.add_argument("--terminal", action="store_true", help="print it here instead")
    options.add_argument("--as-of", metavar="TIME", help="the memory as it was (2025-03-01 means its end)")


def execute(chosen: Namespace) -> None:
    """Write the page, or print."""
    from memory_env.files import write_text
    from writer_rl.memory.memory import Memory
    from writer_rl.memory.page import page
    from writer_rl.memory.plain_text import memory_lines

    with Memory(chosen.memory, create=False) as memory:
        state = memory.state(chosen.as_of)
        if chosen.terminal:
            for line in memory_lines(memory.store, state):
                print(line)
            return
        output = Path(chosen.output or Path(chosen.memory).with_suffix(".html"))
        write_text(output, page(memory.store, state, chosen.as_of or ""), private=True)
    print(f"{output}: {len(state.roster)} members, {len(state.derived())} records; only you may read it")
