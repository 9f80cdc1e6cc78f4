"""`writer-rl memory ask`: a question, a member's records, or who is there."""

from __future__ import annotations

import argparse
import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from writer_rl.command import UsageError

if TYPE_CHECKING:
    from memory_env.query.protocol import Answerer
    from memory_env.records import Record
    from writer_rl.memory.memory import Answered

DESCRIPTION = """Ask a memory that `remember` has built.

  {command} --memory family.db "What does Alice think of the new flat?"
  {command} --memory family.db --as-of 2025-03-01 "Where does Bob live?"
  {command} --memory family.db --show Alice

The answer comes with its evidence: derived records with the messages behind them, then messages, each with speaker
and time. Without --model a deterministic offline answerer quotes the memory; with --model an endpoint answers.
"""


def add_options(options: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    options.add_argument("question", nargs="?", help="the question")
    options.add_argument("--memory", required=True, help="the memory file")
    options.add_argument("--as-of", metavar="TIME", help="answer from the memory as it was (2025-03-01 means its end)")
    options.add_argument("--show", metavar="PERSON", help="print what is recorded about a member, or GROUP, with its history")
    options.add_argument("--members", action="store_true", help="print the members")
    options.add_argument("--json", action="store_true", help="print JSON")
    options.add_argument("--model", help="an endpoint's model that answers (the offline answerer)")
    options.add_argument("--base-url", help="of the endpoint (OPENAI_BASE_URL); the key comes from OPENAI_API_KEY alone")


def execute(chosen: Namespace) -> None:
    """Answer, or show what is asked for."""
    if sum(map(bool, (chosen.question, chosen.show, chosen.members))) != 1:
        raise UsageError("give one of a question, --show PERSON and --members")
    from writer_rl.memory.memory import Memory

    with Memory(chosen.memory, create=False, answerer=answerer(chosen)) as memory:
        if chosen.members:
            members = list(memory.state(chosen.as_of).roster)
            print(json.dumps(members, ensure_ascii=False) if chosen.json else "\n".join(members))
        elif chosen.show:
            show_person(chosen.show, memory.chains(chosen.show, chosen.as_of), chosen.json)
        else:
            show_answer(memory.ask(chosen.question, chosen.as_of), chosen.json)


def answerer(chosen: Namespace) -> Answerer | None:
    """The endpoint's answerer, if one is named."""
    if not chosen.model:
        return None
    from memory_env.query.answer.endpoint import EndpointAnswerer
    from memory_env.query.answer.endpoint_client import EndpointClient, EndpointSettings

    return EndpointAnswerer(EndpointClient(EndpointSettings(chosen.model, chosen.base_url)).check())


def show_answer(answered: Answered, as_json: bool) -> None:
    """An answer and its evidence."""
    if as_json:
        print(json.dumps(asdict(answered), ensure_ascii=False))
        return
    print(answered.text)
    for track, title in (("memory", "from memory"), ("messages", "from messages")):
        lines = [line for line in answered.evidence if line.track == track]
        if lines:
            print(f"\n{title}:")
            print("\n".join(f"  {line}".replace("\n", "\n  ") for line in lines))


def show_person(owner: str, chains: Sequence[tuple[Record, ...]], as_json: bool) -> None:
    """A person's records by layer, each with its earlier versions."""
    if as_json:
        print(json.dumps([[record.to_dict() for record in chain] for chain in chains], ensure_ascii=False))
        return
    if not chains:
        print(f"nothing is recorded about {owner}")
    for layer in dict.fromkeys(chain[-1].layer for chain in chains):
        print(f"{layer}:")
        for chain in (chain for chain in chains if chain[-1].layer == layer):
            current = chain[-1]
            said = "" if current.source == owner else f", said by {current.source}"
            print(f"  {current.content}  ({current.ts}{said})")
            for older in reversed(chain[:-1]):
                print(f"    before: {older.content}  ({older.ts})")
