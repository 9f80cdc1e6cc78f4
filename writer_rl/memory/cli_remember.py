"""`writer-rl memory remember`: chat exports into a memory file."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from writer_rl.command import UsageError
from writer_rl.memory.cli_reading import add_provenance, add_reading, read_options

MOST_LISTED = 10

if TYPE_CHECKING:
    from tqdm import tqdm

    from writer_rl.config import EvaluationConfig
    from writer_rl.memory.remembering import Remembered

DESCRIPTION = """Build a memory from a chat export, or go on with one.

  {command} --memory family.db "WhatsApp Chat with Family.txt"                   # messages only
  {command} --memory family.db --writer configs/tiny_writer chat.json           # with a Writer
  {command} --memory family.db --writer served:exports/writer --base-url http://localhost:8000/v1 chat.json

  {command} --memory family.db --retry --writer endpoint:MODEL                   # what no Writer has written yet
  {command} --memory family.db --rewrite --writer endpoint:MODEL                 # all records anew
  {command} --memory family.db --vectors                                         # make what dense retrieval needs

Give the same or a newer export again: what the memory holds already is skipped. Stop it at any moment: the file holds
whole segments, and the same command goes on. A segment that a Writer refuses is kept word for word and listed. With --rewrite
the old records stay until the new ones are whole. `ask` asks.

The Writer in configs/tiny_writer knows the embedded corpus alone: on a real chat it writes next to nothing. Train one on
chats like yours, or name a language model (endpoint:MODEL).
"""


def add_options(options: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    options.add_argument("source", nargs="*", help="chat exports (docs/data.md lists the formats)")
    options.add_argument("--memory", required=True, help="the memory file; made if it is not there")
    options.add_argument(
        "--writer",
        default="none",
        help="a Writer's folder, served:MODEL (a trained Writer that a server serves), endpoint:MODEL (any language model), "
        "or none: messages only (none)",
    )
    options.add_argument("--retry", action="store_true", help="let the Writer write what is kept word for word only")
    options.add_argument("--rewrite", action="store_true", help="let the Writer write all records anew; replace the old ones")
    options.add_argument("--vectors", action="store_true", help="make all missing vectors for dense retrieval (all-MiniLM-L6-v2)")
    options.add_argument("--base-url", help="of the endpoint (OPENAI_BASE_URL); the key comes from OPENAI_API_KEY alone")
    options.add_argument("--config", help="a configuration of launch/evaluate.py that says how the Writer is run")
    options.add_argument("--prompt", help="the Writer's prompt file (the configuration's)")
    add_provenance(options)
    options.add_argument("--window", type=int, help="most messages the Writer reads at a time (the configuration's, else 25)")
    add_reading(options)


def execute(chosen: Namespace) -> None:
    """Remember every source in turn; then write again, and make vectors, where that is asked for."""
    reading = read_options(chosen)
    if not (chosen.source or chosen.retry or chosen.rewrite or chosen.vectors):
        raise UsageError("give a chat export, or one of --retry, --rewrite and --vectors")
    if chosen.retry and chosen.rewrite:
        raise UsageError("--retry and --rewrite: choose one")
    if (chosen.retry or chosen.rewrite) and chosen.writer == "none":
        raise UsageError(f"--{'retry' if chosen.retry else 'rewrite'} needs a Writer: add --writer")
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
    retrieval = "fused" if chosen.vectors else "lexical"
    made = {"config": config, "base_url": chosen.base_url, "provenance": provenance, "retrieval": retrieval}
    # Only a chat makes a new memory: a mistyped name must not.
    with Memory(chosen.memory, writer, create=bool(chosen.source), **made) as memory:
        for source in chosen.source:
            with tqdm(unit="message", disable=None, desc=Path(source).name) as bar:
                result = memory.remember(source, chosen.format, reading, window, chosen.gap_hours, shown_on(bar))
            report(source, result, writer)
        if chosen.retry or chosen.rewrite:
            with tqdm(unit="segment", disable=None, desc="writing") as bar:
                written = memory.retry(shown_on(bar)) if chosen.retry else memory.rewrite(shown_on(bar))
            print(f"written{' anew' if chosen.rewrite else ''}: {written.segments} segments, {written.records} records", end="")
            print(f", {written.updates} updates")
            report_writer(written.segments, written.records, written.refused, written.errors, writer)
        if chosen.vectors:
            with tqdm(unit="text", disable=None, desc="vectors") as bar:
                print(f"vectors: {memory.retrieval.make_vectors(progress=shown_on(bar))} made")
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


def shown_on(bar: tqdm) -> Callable[[int, int], None]:
    """Progress (done, of all) on a bar."""

    def show(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return show


def report_writer(segments: int, records: int, refused: Sequence[tuple[int, str]], errors: Sequence[str], writer: str) -> None:
    """What a Writer refused, what of its outputs was rejected and why, and what to do where it wrote nothing valid."""
    from writer_rl.memory.rewriting import reasons

    if refused:
        print(f"  {len(refused)} segments are kept word for word, the Writer wrote nothing on them; --retry tries them again:")
        for position, reason in refused[:MOST_LISTED]:
            print(f"    segment {position}: {reason}")
        if len(refused) > MOST_LISTED:
            print(f"    and {len(refused) - MOST_LISTED} more")
    if errors:
        print(f"  {len(errors)} of the Writer's actions were rejected, what was valid is kept: {'; '.join(reasons(errors))}")
    if writer != "none" and segments and not records:
        print("  the Writer wrote no valid record. A Writer knows chats like those it was trained on; configs/tiny_writer knows")
        print("  the embedded corpus alone. Name another, or a language model: --rewrite --writer endpoint:MODEL")


def report(source: str, result: Remembered, writer: str) -> None:
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
    report_writer(result.segments, result.records, result.refused, result.errors, writer)
    if result.verbatim_only:
        print(f"  {result.verbatim_only} messages are too long for the Writer: kept word for word only")
