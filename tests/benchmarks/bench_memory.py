"""Questions to a memory file of 100,000 messages: the first one of a process, and those after it.

python tests/benchmarks/bench_memory.py             lexical, dense and fused; targets: first 2 s, later 0.1 s
python tests/benchmarks/bench_memory.py --small     a tenth of it

The index stands: making it is reported apart. Vectors are random ones, since what an embedder costs is the same for any memory: a
question's vector by all-MiniLM-L6-v2 is timed by itself where it is installed. CPU seconds of one thread.
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from memory_env.ingest import ChatMessage
from memory_env.query.retrieve.minilm import MiniLM, minilm_here
from writer_rl import Memory

FIRST_S, LATER_S = 2.0, 0.1


class Random:
    """Unit vectors drawn from each text's own seed."""

    name = "random"

    def encode(self, texts):
        made = np.stack([np.random.default_rng(sum(text.encode())).normal(size=384) for text in texts]).astype(np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)


def chat(count):
    """Messages of fifty members with Zipf-distributed words, a minute apart."""
    random = np.random.default_rng(0)
    lengths, speakers = random.integers(3, 20, size=count), random.integers(0, 50, size=count)
    for n in range(count):
        words = " ".join(f"word{place % 20_000}" for place in random.zipf(1.3, size=lengths[n]))
        stamp = np.datetime64("2020-01-01T00:00:00") + np.timedelta64(n, "m")
        yield ChatMessage(f"Member{speakers[n]:02d}", words, str(stamp))


def questions():
    random = np.random.default_rng(1)
    for n in range(50):
        x, y, who = f"word{random.integers(1, 3000)}", f"word{random.integers(1, 300)}", f"Member{random.integers(50):02d}"
        yield (f"What does {who} think of {x} {y}?", f"Who likes {x}?", f"When is the {x} {y} of {who}?", "Where is word1?")[
            n % 4
        ]


def ask(path, how):
    """(CPU seconds until the first answer, mean and most of later ones); in a process of its own."""
    started = time.process_time()
    with Memory(path, create=False, retrieval=how, embedder=None if how == "lexical" else Random()) as memory:
        asked = list(questions())
        memory.ask(asked[0])
        first = time.process_time() - started
        later = []
        for question in asked[1:]:
            started = time.process_time()
            memory.ask(question)
            later.append(time.process_time() - started)
    return first, sum(later) / len(later), max(later)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--small", action="store_true", help="10,000 messages")
    count = 10_000 if arguments.parse_args().small else 100_000
    worst = True
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.db"
        started = time.process_time()
        with Memory(path, retrieval="dense", embedder=Random()) as memory:
            memory.remember(list(chat(count)))
            told = time.process_time()
            memory.retrieval._search.catch_up()
            words = time.process_time()
            memory.retrieval.make_vectors()
        print(f"{count:,} messages: remembered in {told - started:.1f} s, word index {words - told:.1f} s", end="")
        print(f", random vectors {time.process_time() - words:.1f} s, {path.stat().st_size / 1e6:.0f} MB; CPU seconds")
        print(f"{'retrieval':<10}{'first question':>16}{'later':>12}{'slowest':>12}")
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            for how in ("lexical", "dense", "fused"):
                first, mean, most = pool.apply(ask, (path, how))
                worst &= first <= FIRST_S and most <= LATER_S
                print(f"{how:<10}{first:>14.2f} s{1000 * mean:>9.1f} ms{1000 * most:>9.1f} ms")
    if minilm_here():
        started = time.process_time()
        model = MiniLM()
        loaded = time.process_time()
        for question in questions():
            model.encode([question])
        each = (time.process_time() - loaded) / 50
        print(f"all-MiniLM-L6-v2 on numpy: {loaded - started:.2f} s to load, {1000 * each:.1f} ms a question")
    print(f"targets {FIRST_S:g} s and {1000 * LATER_S:g} ms: {'reached' if worst else 'MISSED'}")
    return 0 if worst else 1


if __name__ == "__main__":
    sys.exit(main())
