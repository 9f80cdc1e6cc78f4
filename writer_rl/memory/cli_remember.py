"""`writer-rl memory remember`: chat exports into a memory file."""

from __future__ import annotations

import argparse
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from writer_rl.command import UsageError
from writer_rl.memory.cli_reading import add_provenance, add_reading, read_options

if TYPE_CHECKING:
    from writer_rl.config import EvaluationConfig
    from writer_rl.memory.memory import Remembered

DESCRIPTION = """Build a memory from a chat export, or go on with one.

  {command} --memory family.db "WhatsApp Chat with Family.txt"                   # messages only
  {command} --memory family.db --writer configs/tiny_writer chat.json           # with a Writer
  {command} --memory family.db --writer served:exports/writer --base-url http://localhost:8000/v1 chat.json

Give the same or a newer export again: what the memory holds already is skipped. Stop it at any moment: the file holds
whole segments, and the same command goes on. `ask` asks.
"""


def add_options(options: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    options.add_argument("source", nargs="+", help="chat exports (docs/data.md lists the formats)")
    options.add_argument("--memory", required=True, help="the memory file; made if it is not there")
    options.add_argument(
        "--writer",
        default="none",
        help="a Writer's folder, served:MODEL (a trained Writer that a server serves), endpoint:MODEL (any language model), "
        "or none: messages only (none)",
    )
    options.add_argument("--base-url", help="of the endpoint (OPENAI_BASE_URL); the key comes from OPENAI_API_KEY alone")
    options.add_argument("--config", help="a configuration of launch/evaluate.py that says how the Writer is run")
    options.add_argument("--prompt", help="the Writer's prompt file (the configuration's)")
    add_provenance(options)
    options.add_argument("--window", type=int, help="most messages the Writer reads at a time (the configuration's, else 25)")
    add_reading(options)


def execute(chosen: Namespace) -> None:
    """Remember every source in turn."""
    reading = read_options(chosen)
    if chosen.window is not None and chosen.window < 1:
        raise UsageError(f"--window {chosen.window}: must be at least 1")
    from tqdm import tqdm

    from memory_env.provenance import named_provenance
    from memory_env.store.intake import WINDOW
    from writer_rl.memory.memory import Memory

    # A folder is named from where the command runs; the configuration's own paths start at the repository.
    writer = str(Path(chosen.writer).resolve()) if Path(chosen.writer).is_dir() else chosen.writer
    config = None if writer == "none" else writer_config(writer, chosen)
    window = chosen.window or (config and config.data.window) or WINDOW
    provenance = named_provenance(chosen.provenance)
    with Memory(chosen.memory, writer, config=config, base_url=chosen.base_url, provenance=provenance) as memory:
        for source in chosen.source:
            with tqdm(unit="message", disable=None, desc=Path(source).name) as bar:

                def show(done: int, total: int, bar: tqdm = bar) -> None:
                    bar.total = total
                    bar.update(done - bar.n)

                result = memory.remember(source, chosen.format, reading, window, chosen.gap_hours, show)
            report(source, result)
        counts = memory.store.counts()
    print(
        f"{chosen.memory}: {counts['messages']} messages of {counts['members']} members, "
        f"{counts['records']} records, {counts['edges']} updates"
    )


def writer_config(writer: str, chosen: Namespace) -> EvaluationConfig:
    """How the Writer is run: the configuration, else what its folder says, with the command line's prompt."""
    from writer_rl.config import load_config
    from writer_rl.memory.writers import own_config

    config = load_config("evaluate", chosen.config, []) if chosen.config else own_config(writer)
    if chosen.prompt:
        config = config.model_copy(update={"data": config.data.model_copy(update={"prompt": chosen.prompt})})
    return config


def report(source: str, result: Remembered) -> None:
    """What one source brought."""
    print(f"{source}: {result.new} new messages, {result.known} known already; {result.segments} segments", end="")
    print(f", {result.records} records, {result.updates} updates" if result.records or result.updates else "")
    handled = ", ".join(f"{count} {what}" for what, count in sorted(result.counts.items()) if count)
    if handled:
        print(f"  handled: {handled}")
    if result.held_back:
        print(f"  {result.held_back} messages were forgotten (or are by members who were) and stay out")
    for note in result.notes:
        print(f"  note: {note}")
    if result.put_back:
        print(f"  {result.put_back} updates are older than what they update: kept as earlier versions, what is current stays")
    if result.invalid:
        print(f"  the Writer's output had errors in {result.invalid} segments; what was valid is kept")
    if result.verbatim_only:
        print(f"  {result.verbatim_only} messages are too long for the Writer: kept word for word only")
