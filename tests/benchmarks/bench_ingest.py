"""How fast a chat export becomes a memory file (verbatim track, no Writer), and what a message costs in memory.

    python tests/benchmarks/bench_ingest.py [--messages 100000] [--formats whatsapp,telegram]

CPU seconds decide, since a busy machine makes wall time mean nothing. Memory is the growth of the peak resident size less the
growth of the text, per message, from a quarter of the messages to half of them and from half to all: linear means that the
two agree. Each measurement has a process of its own. Wanted: 5,000 messages/s, under 2,048 bytes.
The exports are as the applications write them: indented JSON with what no reader needs, some messages with emoji.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import resource
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import writer_rl.memory.writers  # noqa: E402, F401  what Memory imports when first used must not count
from writer_rl.memory.memory import Memory  # noqa: E402

START = datetime(2020, 1, 1, tzinfo=UTC)
Told = tuple[int, datetime, int, str]
"""Number, time, member and text."""


def told(count: int) -> Iterator[Told]:
    """A chat between 40 people."""
    for number in range(count):
        plan = f"the plan for {number % 97} is to meet at {number % 24} and bring the number {number * 7919 % 1009}"
        emoji = " \U0001f389" if number % 5 == 0 else ""
        yield number, START + timedelta(minutes=7 * number), number * 31 % 40, f"message {number}: {plan}{emoji}"


def whatsapp(path: Path, messages: Iterator[Told]) -> None:
    """Android's text."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{at:%d/%m/%Y, %H:%M} - Member {member}: {text}\n" for _, at, member, text in messages)


def rows_csv(path: Path, messages: Iterator[Told]) -> None:
    """Named columns."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("time", "name", "user_id", "id", "text"))
        table.writerows((at.isoformat(), f"Member {member}", member, number, text) for number, at, member, text in messages)


def rows_jsonl(path: Path, messages: Iterator[Told]) -> None:
    """One object a line."""
    with path.open("w", encoding="utf-8") as file:
        for number, at, member, text in messages:
            row = {"id": number, "time": at.isoformat(), "name": f"Member {member}", "user_id": member, "text": text}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _document(path: Path, header: dict, items: Iterator[dict]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(header, indent=1, ensure_ascii=False)[:-2] + ',\n "messages": [\n')
        for place, item in enumerate(items):
            file.write(",\n" * bool(place) + "  " + json.dumps(item, indent=1, ensure_ascii=False).replace("\n", "\n  "))
        file.write("\n ]\n}\n")


def telegram(path: Path, messages: Iterator[Told]) -> None:
    """result.json of Telegram Desktop."""
    items = (
        {"id": number, "type": "message", "date": f"{at:%Y-%m-%dT%H:%M:%S}", "date_unixtime": str(int(at.timestamp())),
         "from": f"Member {member}", "from_id": f"user{member}", "text": text,
         "text_entities": [{"type": "plain", "text": text}]}
        for number, at, member, text in messages
    )  # fmt: skip
    _document(path, {"name": "bench", "type": "private_group", "id": 1}, items)


def discord(path: Path, messages: Iterator[Told]) -> None:
    """A channel of DiscordChatExporter."""
    items = (
        {"id": str(10**17 + number), "type": "Default", "timestamp": at.isoformat(), "timestampEdited": None,
         "callEndedTimestamp": None, "isPinned": False, "content": text,
         "author": {"id": str(10**16 + member), "name": f"member{member}", "discriminator": "0000", "color": None,
                    "nickname": f"Member {member}", "isBot": False, "roles": [], "avatarUrl": "https://cdn.example/avatar.png"},
         "attachments": [], "embeds": [], "stickers": [], "reactions": [], "mentions": []}
        for number, at, member, text in messages
    )  # fmt: skip
    _document(path, {"guild": {"id": "1", "name": "g"}, "channel": {"id": "2", "name": "bench"}}, items)


def slack(path: Path, messages: Iterator[Told]) -> None:
    """An export's archive: a file a day."""
    days: dict[str, list[dict]] = {}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        users = [{"id": f"U{n}", "name": f"m{n}", "profile": {"display_name": f"Member {n}"}} for n in range(40)]
        archive.writestr("users.json", json.dumps(users))
        archive.writestr("channels.json", json.dumps([{"id": "C1", "name": "bench"}]))
        for _, at, member, text in messages:
            item = {"type": "message", "user": f"U{member}", "ts": f"{at.timestamp():.6f}", "text": text, "team": "T1",
                    "blocks": [{"type": "rich_text", "elements": [{"type": "text", "text": text}]}]}  # fmt: skip
            day = f"{at:%Y-%m-%d}"
            if day not in days and days:
                _day(archive, days)
            days.setdefault(day, []).append(item)
        _day(archive, days)


def _day(archive: zipfile.ZipFile, days: dict[str, list[dict]]) -> None:
    for day, items in days.items():
        archive.writestr(f"bench/{day}.json", json.dumps(items, indent=4))
    days.clear()


FORMATS: dict[str, tuple[str, Callable[[Path, Iterator[Told]], None]]] = {
    "whatsapp": ("chat.txt", whatsapp),
    "telegram": ("result.json", telegram),
    "slack": ("export.zip", slack),
    "discord": ("channel.json", discord),
    "csv": ("chat.csv", rows_csv),
    "jsonl": ("chat.jsonl", rows_jsonl),
}


def write(kind: str, path: Path, count: int) -> None:
    """Write an export of `count` messages."""
    FORMATS[kind][1](path, told(count))


def ingest(path: Path, memory: Path, count: int, again: bool) -> dict[str, float]:
    """Ingest an export in this process, and (`again`) a second time."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    with Memory(memory) as opened:
        result = opened.remember(path)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert (result.new, result.known) == (count, 0), result
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    second = time.process_time()
    if again:
        with Memory(memory) as opened:
            assert opened.remember(path).new == 0
    return {"cpu": cpu, "wall": wall, "again": time.process_time() - second, "grown": grown, "file": memory.stat().st_size}


def measure(kind: str, count: int, again: bool) -> dict[str, float]:
    """Write one export and ingest it, each in a process of its own; what it takes, and the bytes of its text."""
    text = sum(len(text.encode()) for *_, text in told(count))
    with tempfile.TemporaryDirectory() as folder:
        path, memory = Path(folder) / FORMATS[kind][0], Path(folder) / "m.db"
        for work, arguments in ((write, (kind, path, count)), (ingest, (path, memory, count, again))):
            # A fork has the imports already, and its peak is its own.
            with multiprocessing.get_context("fork").Pool(1) as pool:
                found = pool.apply(work, arguments)
    return {**found, "text": text}


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--messages", type=int, default=100_000)
    options.add_argument("--formats", default=",".join(FORMATS))
    chosen = options.parse_args()
    sizes = [chosen.messages // 4, chosen.messages // 2, chosen.messages]
    print(f"{'format':<10}{'messages':>10}{'CPU s':>8}{'msg/CPU s':>11}{'wall s':>8}{'again s':>9}", end="")
    print(f"{'B/msg to half':>15}{'B/msg to all':>14}{'file B/msg':>12}")
    for kind in chosen.formats.split(","):
        found = [measure(kind, size, size == sizes[-1]) for size in sizes]
        costs = [
            (more["grown"] - less["grown"] - more["text"] + less["text"]) / (size - smaller)
            for less, more, smaller, size in zip(found, found[1:], sizes, sizes[1:], strict=False)
        ]
        full = found[-1]
        print(f"{kind:<10}{sizes[-1]:>10}{full['cpu']:>8.2f}{sizes[-1] / full['cpu']:>11.0f}{full['wall']:>8.1f}", end="")
        print(f"{full['again']:>9.2f}{costs[0]:>15.0f}{costs[1]:>14.0f}{full['file'] / sizes[-1]:>12.0f}", flush=True)


if __name__ == "__main__":
    main()
