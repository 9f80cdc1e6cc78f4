"""How fast a chat export becomes a memory file (verbatim track, no Writer), and what a message costs in memory.

    python tests/benchmarks/bench_ingest.py [--messages 100000]

CPU seconds decide, since a busy machine makes wall time mean nothing. Memory is the growth of the peak resident size from
half the messages to all of them, less their text, each in a process of its own. Wanted: 5,000 messages/s, under 2,048 bytes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

FORMATS = ("whatsapp", "telegram", "csv")
START = datetime(2020, 1, 1)


def lines(count: int):
    """(time, name, text) of a chat between 40 people."""
    for number in range(count):
        text = f"message {number}: the plan for {number % 97} is to meet at {number % 24} and bring the number {number * 7919 % 1009}"
        yield START + timedelta(minutes=7 * number), f"Member {number * 31 % 40}", text


def write_export(kind: str, path: Path, count: int) -> int:
    """Write an export; the bytes of its texts."""
    told = list(lines(count))
    if kind == "whatsapp":
        path.write_text("".join(f"{t:%d/%m/%Y, %H:%M} - {name}: {text}\n" for t, name, text in told))
    elif kind == "csv":
        path.write_text("time,name,text\n" + "".join(f'{t.isoformat()},{name},"{text}"\n' for t, name, text in told))
    else:
        messages = [
            {"id": n, "type": "message", "date": t.isoformat(), "date_unixtime": str(int((t - datetime(1970, 1, 1)).total_seconds())),
             "from": name, "from_id": f"user{name[7:]}", "text": text, "text_entities": [{"type": "plain", "text": text}]}
            for n, (t, name, text) in enumerate(told)
        ]  # fmt: skip
        path.write_text(json.dumps({"name": "bench", "type": "private_group", "id": 1, "messages": messages}))
    return sum(len(text.encode()) for _, _, text in told)


def measure(kind: str, count: int) -> dict[str, float]:
    """Ingest one export in this process."""
    from writer_rl.memory import Memory

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / {"whatsapp": "chat.txt", "telegram": "result.json", "csv": "chat.csv"}[kind]
        # Another process writes the export: what writing takes must not count here.
        command = [sys.executable, __file__, "--write", str(path), "--one", kind, "--messages", str(count)]
        text = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        wall, cpu = time.perf_counter(), time.process_time()
        with Memory(Path(folder) / "m.db") as memory:
            result = memory.remember(path)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        assert result.new == count, result
        again = time.process_time()
        with Memory(Path(folder) / "m.db") as memory:
            assert memory.remember(path).new == 0
        again = time.process_time() - again
        size = (Path(folder) / "m.db").stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"cpu": cpu, "wall": wall, "again": again, "peak": peak * 1024, "before": before * 1024, "text": text, "file": size}


def apart(kind: str, count: int) -> dict[str, float]:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--one", kind, "--messages", str(count)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print the table, or (--one) measure one format for it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--messages", type=int, default=100_000)
    options.add_argument("--one", choices=FORMATS)
    options.add_argument("--write", type=Path)
    chosen = options.parse_args()
    if chosen.write:
        print(write_export(chosen.one, chosen.write, chosen.messages))
        return
    if chosen.one:
        print(json.dumps(measure(chosen.one, chosen.messages)))
        return
    print(
        f"{'format':<10}{'messages':>10}{'CPU s':>8}{'msg/CPU s':>11}{'wall s':>8}{'again CPU s':>13}{'bytes/msg':>11}{'file/msg':>10}"
    )
    for kind in FORMATS:
        half, full = apart(kind, chosen.messages // 2), apart(kind, chosen.messages)
        grown = full["peak"] - half["peak"] - (full["text"] - half["text"])
        per_message = grown / (chosen.messages - chosen.messages // 2)
        print(
            f"{kind:<10}{chosen.messages:>10}{full['cpu']:>8.2f}{chosen.messages / full['cpu']:>11.0f}{full['wall']:>8.1f}"
            f"{full['again']:>13.2f}{per_message:>11.0f}{full['file'] / chosen.messages:>10.0f}"
        )


if __name__ == "__main__":
    main()
