"""`writer-rl memory ask`: a question, a member's records, or who is there."""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING

from writer_rl.command import UsageError

NOT_RECORDED = "not recorded"
SLOW = 100
"""So many vectors take long enough to be told of."""

if TYPE_CHECKING:
    from memory_env.query.protocol import Answerer
    from writer_rl.memory.answers import Answered
    from writer_rl.memory.memory import Memory

DESCRIPTION = """Ask a memory that `remember` has built.

  {command} --memory family.db "What does Alice think of the new flat?"
  {command} --memory family.db --as-of 2025-03-01 "Where does Bob live?"
  {command} --memory family.db --show Alice

The answer comes with its evidence: derived records with the messages behind them, then messages, each with speaker
and time. Without --model an offline reader quotes the memory. It is English and literal: it finds statements in the
question's own words, and says "not recorded" otherwise. With --model a language model behind an endpoint answers.

--retrieval: lexical finds by words; dense by meaning (all-MiniLM-L6-v2, the extra 'embed'); fused by both; auto is fused where
the model is installed. Dense needs a vector of every text: the first question makes up to 1,000 of them, `remember --vectors`
makes all.
"""


def add_options(options: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    options.add_argument("question", nargs="?", help="the question")
    options.add_argument("--memory", required=True, help="the memory file")
    options.add_argument("--as-of", metavar="TIME", help="answer from the memory as it was (2025-03-01 means its end)")
    options.add_argument("--show", metavar="PERSON", help="print what is recorded about a member, or GROUP, with its history")
    options.add_argument("--members", action="store_true", help="print the members")
    options.add_argument(
        "--retrieval", choices=("auto", "lexical", "dense", "fused"), default="auto", help="how evidence is found (auto)"
    )
    options.add_argument("--json", action="store_true", help="print JSON")
    options.add_argument("--model", help="an endpoint's model that answers (the offline answerer)")
    options.add_argument("--base-url", help="of the endpoint (OPENAI_BASE_URL); the key comes from OPENAI_API_KEY alone")


def execute(chosen: Namespace) -> None:
    """Answer, or show what is asked for."""
    if sum(map(bool, (chosen.question, chosen.show, chosen.members))) != 1:
        raise UsageError("give one of a question, --show PERSON and --members")
    from writer_rl.memory.memory import Memory

    with Memory(chosen.memory, create=False, answerer=answerer(chosen), retrieval=chosen.retrieval) as memory:
        if chosen.members:
            members = list(memory.state(chosen.as_of).roster)
            print(json.dumps(members, ensure_ascii=False) if chosen.json else "\n".join(members))
        elif chosen.show:
            show_person(memory, chosen.show, chosen.as_of, chosen.json)
        else:
            warn_of_vectors(memory)
            answered = memory.ask(chosen.question, chosen.as_of)
            show_answer(answered, chosen.json)
            if not chosen.model and answered.text.endswith(NOT_RECORDED) and not chosen.json:
                print("(the offline reader is English and literal: ask in the chat's own words, or use --model)", file=sys.stderr)


def warn_of_vectors(memory: Memory) -> None:
    """Say what dense retrieval costs before it is paid."""
    from memory_env.query.living import AT_ONCE

    missing = memory.retrieval.missing()
    if missing > AT_ONCE:
        words = "by their words alone; `remember --vectors` makes them, once, some 50 to 200 a second"
        print(f"{missing - AT_ONCE} texts have no vector yet and are found {words}", file=sys.stderr)
    if missing > SLOW:
        now = min(missing, AT_ONCE)
        print(f"making {now} vectors first; they are kept in the memory (--retrieval lexical needs none)", file=sys.stderr)


def answerer(chosen: Namespace) -> Answerer | None:
    """The endpoint's answerer, if one is named."""
    if not chosen.model:
        return None
    from memory_env.default_prompts import PROMPTS
    from memory_env.query.answer.endpoint import EndpointAnswerer
    from memory_env.query.answer.endpoint_client import EndpointClient, EndpointSettings

    client = EndpointClient(EndpointSettings(chosen.model, chosen.base_url)).check()
    return EndpointAnswerer(client, PROMPTS / "answer_memory.jinja")


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


def show_person(memory: Memory, owner: str, as_of: str | None, as_json: bool) -> None:
    """A person's records by layer, each with its earlier versions and the time of the message that it came from."""
    from writer_rl.memory.plain_text import person_lines
    from writer_rl.memory.views import member_view

    chains = memory.chains(owner, as_of)
    if as_json:
        print(json.dumps([[record.to_dict() for record in chain] for chain in chains], ensure_ascii=False))
        return
    print("\n".join(person_lines(member_view(memory.state(as_of), owner))))
