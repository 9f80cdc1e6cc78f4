"""How long forgetting one of 100 members takes in a memory of 100,000 messages, and that no byte of their words is left.

python tests/benchmarks/bench_forget.py --messages 100000 --members 100
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory_env.ingest.chat import ChatMessage
from writer_rl.memory.memory import Memory

WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("n", "r", "lan", "mer", "tik", "so", "vet", "ra")]


def chat(messages: int, members: int, seed: int) -> list[ChatMessage]:
    """Random chatter; one message in fifty quotes an earlier one."""
    dice, start = random.Random(seed), datetime(2024, 1, 1)
    told: list[ChatMessage] = []
    for number in range(messages):
        text = " ".join(dice.choices(WORDS, k=dice.randint(3, 25)))
        if told and dice.random() < 0.02:
            text = f'"{dice.choice(told).content}" {text}'
        when = (start + timedelta(seconds=40 * number)).isoformat()
        told.append(ChatMessage(f"member {dice.randrange(members)}", text, when))
    return told


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--messages", type=int, default=100_000)
    options.add_argument("--members", type=int, default=100)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    told = chat(chosen.messages, chosen.members, chosen.seed)
    texts = [message.content.encode() for message in told if message.speaker == "member 7"]
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "m.db") as memory:
        began = time.process_time()
        memory.remember(told)
        print(f"remembered in {time.process_time() - began:.1f} CPU s, {memory.store.path.stat().st_size / 2**20:.0f} MiB")
        began, clock = time.process_time(), time.monotonic()
        gone = memory.forget(member="member 7")
        print(f"forgotten in {time.process_time() - began:.2f} CPU s, {time.monotonic() - clock:.2f} s by the clock: {gone}")
        left = b"".join(file.read_bytes() for file in Path(folder).iterdir())
        print(f"{sum(text in left for text in texts[:200])} of their first {min(200, len(texts))} messages are left in the file")


if __name__ == "__main__":
    main()
