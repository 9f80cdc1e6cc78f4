"""How fast the memory environment steps, and whether a step's cost grows with the memory.

    python tests/benchmarks/bench_environment.py

One step = 6 messages into System 1 and an output of 6 actions (4 ADD, 2 UPDATE, as raw JSON) on a state of N records.
As in training, G = 8 forks of one state are stepped through the same segment with different outputs. CPU time of one
thread; sizes are measured in turn, round by round, and the fastest round of each counts. The target is 5,000 steps per
CPU second at 200 records, flat to 20,000.
"""

from __future__ import annotations

import itertools
import json
import pickle
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory_env.conversation import Message, Segment
from memory_env.observation import observe
from memory_env.state import MemoryState
from memory_env.step import step

MEMBERS = [f"Member{number}" for number in range(8)]
WORDS = [f"word{number}" for number in range(2000)]
SIZES = (200, 2_000, 20_000)
FORKS = 8
ROUNDS = 7


def sentence(rng: random.Random, length: int = 10) -> str:
    return " ".join(rng.choices(WORDS, k=length))


def segment_at(position: int, rng: random.Random) -> Segment:
    session = f"s{position}"
    messages = tuple(
        Message(MEMBERS[rng.randrange(8)], sentence(rng, 12), "2026-01-01T10:00:00", f"{session}_t{i}", session, i)
        for i in range(6)
    )
    return Segment(position, session, "2026-01-01", messages)


def add(rng: random.Random, speakers: list[str]) -> dict:
    owner, source = rng.choice(speakers), rng.choice(speakers)
    return {
        "action": "ADD",
        "owner": owner,
        "source": source,
        "layer": "per_speaker_core",
        "utype": "fact",
        "content": sentence(rng),
    }


def output(state: MemoryState, segment: Segment, rng: random.Random, updates: int = 2) -> str:
    speakers = sorted({message.speaker for message in segment.messages})
    heads = state.heads(rng.choice([speaker for speaker in MEMBERS if state.heads(speaker)]))
    cited = rng.sample(heads, min(updates, len(heads)))
    actions = [{"action": "UPDATE", "entry_id": head.entry_id, "content": sentence(rng)} for head in cited]
    actions += [add(rng, speakers) for _ in range(6 - len(actions))]
    return json.dumps({"actions": actions})


def state_of(size: int, rng: random.Random) -> MemoryState:
    """A state of `size` records, half of them messages."""
    state = MemoryState.empty()
    for position in range(size // 12):
        segment = segment_at(position, rng)
        speakers = sorted({message.speaker for message in segment.messages})
        state, _ = step(state, segment, [add(rng, speakers) for _ in range(6)])
    return state


def steps_per_second(state: MemoryState, rng: random.Random, positions: int = 50) -> float:
    segments = [segment_at(100_000 + index, rng) for index in range(positions)]
    outputs = [[output(state, segment, rng) for _ in range(FORKS)] for segment in segments]
    started = time.process_time()
    for segment, completions in zip(segments, outputs, strict=True):
        for completion in completions:
            _, report = step(state, segment, completion)
            assert report.applied == 6, report
    return positions * FORKS / (time.process_time() - started)


def milliseconds(work: Callable[[], object], repeat: int = 5) -> float:
    best = float("inf")
    for _ in range(repeat):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best * 1e3


def copy_by_pickle(state: MemoryState) -> MemoryState:
    return pickle.loads(pickle.dumps(state))


def main() -> None:
    rng = random.Random(0)
    states = {size: state_of(size, rng) for size in SIZES}
    best = dict.fromkeys(SIZES, 0.0)
    for _, size in itertools.product(range(ROUNDS), SIZES):
        best[size] = max(best[size], steps_per_second(states[size], rng))

    print(f"{'records':>8} {'steps/CPU-s':>12} {'us/step':>8} {'observe ms':>11} {'to_dict ms':>11} {'pickle ms':>10}")
    for size, state in states.items():
        observing = milliseconds(partial(observe, state, segment_at(200_000, rng)))
        pickling = milliseconds(partial(copy_by_pickle, state))
        print(
            f"{size:>8} {best[size]:>12,.0f} {1e6 / best[size]:>8.0f} "
            f"{observing:>11.2f} {milliseconds(state.to_dict):>11.2f} {pickling:>10.2f}"
        )
    ratio = best[SIZES[0]] / best[SIZES[-1]]
    print(f"cost of a step at {SIZES[-1]:,} records: {ratio:.2f} times that at {SIZES[0]:,}")


if __name__ == "__main__":
    main()
