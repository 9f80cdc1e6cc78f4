"""Options that several commands share: how a chat export is read, and how the messages behind a record are found."""

from __future__ import annotations

import argparse
from argparse import Namespace
from typing import TYPE_CHECKING

from writer_rl.command import UsageError, one_of

if TYPE_CHECKING:
    from memory_env.ingest.chat import ReadOptions


def add_reading(options: argparse.ArgumentParser) -> None:
    """The options of reading."""
    options.add_argument(
        "--format", default="auto", type=one_of(_formats), metavar="NAME",
        help="of the source, such as whatsapp, telegram, slack, discord, csv or jsonl (auto; a wrong name lists them all)",
    )  # fmt: skip
    options.add_argument(
        "--date-order", default="auto", choices=("auto", "dmy", "mdy", "ymd"), help="of dates such as 03/04/25 (auto)"
    )
    options.add_argument("--column", action="append", default=[], metavar="OURS=THEIRS",
                         help="a column of a CSV or JSONL: speaker, content, ts, channel, speaker_id, id, reply_to")  # fmt: skip
    options.add_argument("--delimiter", default="", help="of a CSV (found from its header)")
    options.add_argument("--channel", default="", help="only this channel")
    options.add_argument("--keep-bots", action="store_true", help="keep the messages of bots")
    options.add_argument("--gap-hours", type=float, default=6.0, help="a longer silence starts a session (%(default)s)")


def add_provenance(options: argparse.ArgumentParser) -> None:
    """--provenance: how the messages behind a record are found."""
    options.add_argument(
        "--provenance", type=one_of(_provenances), default="lexical", metavar="NAME",
        help="how the messages behind a record (from_ids) are found: lexical (by shared words) or minilm (by embeddings, where "
        "all-MiniLM-L6-v2 is installed) (default: %(default)s)",
    )  # fmt: skip


def _provenances() -> tuple[str, ...]:
    from memory_env.provenance import PROVENANCES

    return PROVENANCES


def _formats() -> tuple[str, ...]:
    from memory_env.ingest.formats import FORMATS

    return ("auto", *FORMATS)


def read_options(chosen: Namespace) -> ReadOptions:
    """ReadOptions from the options of `add_reading`."""
    from memory_env.ingest.chat import ReadOptions

    columns = {}
    for pair in chosen.column:
        ours, equals, theirs = pair.partition("=")
        if not equals or not theirs:
            raise UsageError(f"--column {pair}: write it as OURS=THEIRS, for example speaker=From")
        columns[ours] = theirs
    if chosen.gap_hours <= 0:
        raise UsageError(f"--gap-hours {chosen.gap_hours}: must be positive")
    delimiter = {"\\t": "\t", "tab": "\t"}.get(chosen.delimiter, chosen.delimiter)
    if len(delimiter) > 1:
        raise UsageError(f"--delimiter {delimiter}: must be one character, or tab")
    return ReadOptions(chosen.date_order, chosen.keep_bots, chosen.channel, columns, delimiter)
