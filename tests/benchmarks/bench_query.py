"""Retrieval without a language model: 1,000 questions over 100,000 messages and 20,000 derived records.

python tests/benchmarks/bench_query.py             lexical and dense (embeddings given) retrieval; target: 20 questions/s
python tests/benchmarks/bench_query.py --small     a tenth of it
python tests/benchmarks/bench_query.py --rank-bm25 and BM25 against rank-bm25's own loop, the same scores

Building the indexes is reported apart from answering. Process time, one thread.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from memory_env.query.pipeline import QueryPipeline
from memory_env.query.retrieve.bm25 import BM25
from memory_env.query.retrieve.index import MemoryIndex
from memory_env.query.retrieve.terms import terms
from memory_env.records import DERIVED_UTYPES, GROUP, GROUP_LAYERS, PERSON_LAYERS, VERBATIM_LAYER, Record
from memory_env.state import MemoryState

MEMBERS = tuple(f"Member{number:02d}" for number in range(50))
TARGET = 20.0


class GivenEmbeddings:
    """Random unit vectors by text: what an embedder costs is not measured here."""

    name = "given"

    def __init__(self, dimension: int = 384):
        self._dimension, self._known = dimension, {}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        new = [text for text in texts if text not in self._known]
        vectors = np.random.default_rng(len(self._known)).normal(size=(len(new), self._dimension)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        self._known.update(zip(new, vectors, strict=True))
        return np.stack([self._known[text] for text in texts])


def make_memory(messages: int, records: int, random: np.random.Generator) -> MemoryState:
    """A chat with Zipf-distributed words, fifty members, sessions of fifty messages, every tenth record an UPDATE."""
    vocabulary = [f"word{number}" for number in range(20_000)]

    def text(length: int) -> str:
        return " ".join(vocabulary[place % len(vocabulary)] for place in random.zipf(1.3, size=length))

    speakers = random.choice(MEMBERS, size=messages)
    made = [
        Record(
            f"m{i}", text(12), speaker, speaker, VERBATIM_LAYER, "utterance", session=f"s{i // 50}", turn=i % 50, ts=str(i)
        )  # fmt: skip
        for i, speaker in enumerate(map(str, speakers))
    ]
    for i in range(records):
        group = i % 5 == 0
        owner, source = GROUP if group else str(random.choice(MEMBERS)), str(random.choice(MEMBERS))
        layer = (GROUP_LAYERS if group else PERSON_LAYERS)[i % 2]
        new = f"d{i + 1}" if i % 10 == 0 and i + 1 < records else ""
        if i % 10 == 1:  # the new version has the coordinates of the old one
            owner, source, layer = made[-1].owner, made[-1].source, made[-1].layer
        utype = DERIVED_UTYPES[i % len(DERIVED_UTYPES)]
        links = (f"d{i - 1}",) if i % 10 == 1 else ()
        made.append(Record(f"d{i}", text(6), owner, source, layer, utype, superseded_by=new, links=links))
    return MemoryState.from_records(made, MEMBERS)


def make_questions(count: int, random: np.random.Generator) -> list[str]:
    """Every kind of row: one member, two, everyone, the group, nobody named; present and past."""
    shapes = (
        "What does {a} think of {x} {y}?",
        "What was {a}'s {x} {y} before it changed?",
        "What is {a}'s view of {b} and {x}?",
        "What does every member think of {x} {y}?",
        "What did the group decide about {x} {y}?",
        "Who said that {a} likes {x}?",
        "Which member prefers {x} {y}?",
    )
    questions = []
    for number in range(count):
        a, b = random.choice(MEMBERS, size=2, replace=False)
        x, y = (f"word{place}" for place in random.integers(1, 3_000, size=2))
        questions.append(shapes[number % len(shapes)].format(a=a, b=b, x=x, y=y))
    return questions


def timed(call: Callable[[], object]) -> tuple[object, float]:
    started = time.process_time()
    result = call()
    return result, time.process_time() - started


def prepared(pipeline: QueryPipeline, state: MemoryState) -> MemoryIndex:
    index = pipeline.index(state)
    index.verbatim.prepare(), index.derived.prepare()
    return index


def compare_with_rank_bm25(state: MemoryState, questions: Sequence[str]) -> None:
    from rank_bm25 import BM25Okapi

    corpus = [terms(f"{record.source}: {record.content}") for record in state.verbatim()]
    theirs, ours = BM25Okapi(corpus), BM25(corpus)
    asked = [terms(question) for question in questions]
    slow, slow_s = timed(lambda: [theirs.get_scores(query) for query in asked])
    fast, fast_s = timed(lambda: [ours.scores(query) for query in asked])
    equal = all(np.array_equal(a, b) for a, b in zip(slow, fast, strict=True))
    print(f"\nBM25, {len(asked)} questions: rank-bm25 {slow_s / len(asked):.4f} s, here {fast_s / len(asked):.6f} s each", end="")
    print(f" ({slow_s / fast_s:,.0f} times as fast), scores {'equal to the last bit' if equal else 'DIFFER'}")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--small", action="store_true", help="a tenth of messages, records and questions")
    arguments.add_argument("--rank-bm25", action="store_true", help="compare BM25 with rank-bm25 on 20 questions")
    chosen = arguments.parse_args()
    scale = 10 if chosen.small else 1
    random = np.random.default_rng(0)
    state = make_memory(100_000 // scale, 20_000 // scale, random)
    questions = make_questions(1_000 // scale, random)
    print(f"{len(state.verbatim()):,} messages, {len(state.derived()):,} records, {len(questions):,} questions, process time")
    print(f"{'retrieval':<10}{'index build':>14}{'per question':>15}{'questions/s':>14}{'slowest':>12}")
    worst = float("inf")
    for name, embedder in (("lexical", None), ("dense", GivenEmbeddings())):
        pipeline = QueryPipeline(embedder=embedder)

        index, build_s = timed(partial(prepared, pipeline, state))
        each = [timed(partial(pipeline.evidence, question, index))[1] for question in questions]
        rate = len(each) / sum(each)
        worst = min(worst, rate)
        print(f"{name:<10}{build_s:>12.2f} s{1000 * sum(each) / len(each):>12.2f} ms{rate:>14.1f}{1000 * max(each):>9.1f} ms")
    if chosen.rank_bm25:
        compare_with_rank_bm25(state, questions[:20])
    print(f"\ntarget {TARGET:g} questions/s: {'reached' if worst >= TARGET else 'MISSED'}")
    return 0 if worst >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
