"""`writer-rl memory forget`: a member, a message, a record or a chat out of a memory file."""

from __future__ import annotations

import argparse
from argparse import Namespace

from writer_rl.command import UsageError

DESCRIPTION = """Forget a member, a message, a record or a whole chat, so that no byte of it is left in the file.

  {command} --memory family.db Alice                 # what Alice said, what is recorded about and by her
  {command} --memory family.db Alice --redact        # also her name where others say it
  {command} --memory family.db --message 1a2b3c4d    # ids: export, or ask --json
  {command} --memory family.db --allow Alice         # let her messages come in again from now on

What others said stays, without the words that they quoted. A later import does not bring back what was forgotten.
There is no undo: copy the file first if you may want it back (and then the copy still knows).
"""


def add_options(options: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    options.add_argument("member", nargs="?", help="a member, as `ask --members` names them")
    options.add_argument("--memory", required=True, help="the memory file")
    options.add_argument("--message", metavar="ID", help="one message")
    options.add_argument("--record", metavar="ID", help="one record, with its earlier and later versions")
    options.add_argument("--chat", metavar="NAME", help="a chat: its messages and what was written of them")
    options.add_argument("--redact", action="store_true", help="of a member: also the name where others say it")
    options.add_argument("--allow", metavar="NAME", help="forget nothing; let a forgotten member's messages come in again")


def execute(chosen: Namespace) -> None:
    """Forget, and say what went."""
    if sum(map(bool, (chosen.member, chosen.message, chosen.record, chosen.chat, chosen.allow))) != 1:
        raise UsageError("give one of a member, --message ID, --record ID, --chat NAME and --allow NAME")
    if chosen.redact and not chosen.member:
        raise UsageError("--redact: belongs to a member; name one")
    from writer_rl.memory.memory import Memory

    with Memory(chosen.memory, create=False) as memory:
        if chosen.allow:
            if not memory.allow(chosen.allow):
                raise UsageError(f"--allow {chosen.allow}: nobody of that name was forgotten")
            print(f"{chosen.memory}: {chosen.allow} may come in again; remember the chat to bring the messages back")
            return
        gone = memory.forget(
            chosen.member or "",
            message=chosen.message or "",
            record=chosen.record or "",
            chat=chosen.chat or "",
            redact=chosen.redact,
        )
    print(
        f"{chosen.memory}: forgot {gone.messages} messages, {gone.records} records, {gone.edges} updates; "
        f"{gone.quotations} texts of others lost a quotation, {gone.completions} raw outputs were emptied"
    )
