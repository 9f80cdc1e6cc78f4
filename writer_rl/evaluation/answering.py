"""Questions of one memory answered and judged: in parallel, each once, on the disk as soon as it is known."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

from memory_env import Network, Question
from memory_env.query.pipeline import QueryPipeline
from memory_env.query.protocol import Answer, Answerer, Evidence, Judge, JudgeError, Verdict
from memory_env.query.retrieve.index import MemoryIndex
from writer_rl.evaluation.memories import WrittenMemory, append_line, read_lines
from writer_rl.evaluation.scores import Result, token_f1


class TooManyFailures(RuntimeError):
    """The backend fails too often; what is done is kept, and the same command continues."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a result belongs. Example: Place("main", "RL", 0)."""

    variant: str
    writer: str
    seed: int


class ResultFile:
    """questions.jsonl: one line per judged question. Questions that could not be judged are not in it, so they are asked
    again.
    """

    def __init__(self, path: Path):
        self.path = path
        self._lock = threading.Lock()
        self._done: dict[tuple[Place, str, str], dict[str, Any]] = {}
        for line in read_lines(path):
            place = Place(line["variant"], line["writer"], line["seed"])
            self._done[place, line["network_id"], line["question_id"]] = line

    def get(self, place: Place, network_id: str, question_id: str) -> Result | None:
        line = self._done.get((place, network_id, question_id))
        if line is None:
            return None
        return Result(network_id, question_id, line["category"], line["correct"], line["score"], line["token_f1"])

    def add(self, place: Place, network: Network, question: Question, asked: JudgedAnswer) -> Result:
        result = Result(
            network.network_id,
            question.id,
            question.category,
            asked.verdict.correct,
            asked.verdict.score,
            token_f1(asked.answer.text, question.answer),
        )
        line = {
            "variant": place.variant,
            "writer": place.writer,
            "seed": place.seed,
            "network_id": network.network_id,
            "question_id": question.id,
            "category": question.category,
            "question": question.question,
            "gold": question.answer,
            "answer": asked.answer.text,
            "option": asked.answer.option,
            "correct": result.correct,
            "score": result.score,
            "token_f1": result.token_f1,
            "reason": asked.verdict.reason,
            "evidence": asked.evidence_key,
        }
        with self._lock:
            append_line(self.path, line)
            self._done[place, network.network_id, question.id] = line
        return result


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer, its verdict, and the key of the evidence it was given for."""

    answer: Answer
    verdict: Verdict
    evidence_key: str


class Examiner:
    """Answers and judges; equal evidence for one question is answered once, whichever Writer or variant it came from."""

    def __init__(self, answerer: Answerer, judge: Judge, concurrency: int, max_failure_rate: float):
        self._answerer, self._judge = answerer, judge
        self._concurrency, self._max_failure_rate = concurrency, max_failure_rate
        self._known: dict[tuple[str, str, str], JudgedAnswer] = {}

    def examine(
        self,
        place: Place,
        pipeline: QueryPipeline,
        networks: Sequence[Network],
        memories: Sequence[WrittenMemory],
        file: ResultFile,
        on_result: Callable[[], None] = lambda: None,
    ) -> tuple[list[Result], list[JudgeError]]:
        """All results of one Writer, seed and variant, in question order, and what failed.

        Raises TooManyFailures once more than `max_failure_rate` of all questions have failed.
        """
        results: dict[tuple[str, str], Result] = {}
        failures: list[JudgeError] = []
        total = sum(len(network.questions) for network in networks)
        todo = []
        for network, memory in zip(networks, memories, strict=True):
            for question in network.questions:
                found = file.get(place, network.network_id, question.id)
                if found is None:
                    todo.append((network, memory, question))
                else:
                    results[network.network_id, question.id] = found
                    on_result()
        for network, question, outcome in self._outcomes(pipeline, todo):
            if isinstance(outcome, JudgeError):
                failures.append(outcome)
                if len(failures) > self._max_failure_rate * total:
                    raise TooManyFailures(
                        f"{len(failures)} of {total} questions could not be judged, last: {outcome}; "
                        "what is done is kept, the same command continues"
                    )
            else:
                results[network.network_id, question.id] = file.add(place, network, question, outcome)
            on_result()
        ordered = [
            results[network.network_id, question.id]
            for network in networks
            for question in network.questions
            if (network.network_id, question.id) in results
        ]
        return ordered, failures

    def _outcomes(
        self, pipeline: QueryPipeline, todo: Sequence[tuple[Network, WrittenMemory, Question]]
    ) -> Iterator[tuple[Network, Question, JudgedAnswer | JudgeError]]:
        """In order for a concurrency of 1, else as they come."""
        indexes: dict[str, MemoryIndex] = {}
        jobs = []
        for network, memory, question in todo:
            if network.network_id not in indexes:
                indexes[network.network_id] = pipeline.index(memory.state)
            jobs.append((network, question, indexes[network.network_id]))
        outcome = partial(self._outcome, pipeline)
        if self._concurrency == 1:
            yield from map(outcome, jobs)
            return
        pool = ThreadPool(self._concurrency)  # daemon threads: a hung call does not keep a stopped run alive
        try:
            yield from pool.imap_unordered(outcome, jobs)
        finally:
            pool.terminate()

    def _outcome(
        self, pipeline: QueryPipeline, job: tuple[Network, Question, MemoryIndex]
    ) -> tuple[Network, Question, JudgedAnswer | JudgeError]:
        network, question, index = job
        try:
            evidence = pipeline.evidence(question.question, index)
            return network, question, self._ask(network, question, evidence)
        except JudgeError as error:
            error.question_id = error.question_id or question.id
            return network, question, error

    def _ask(self, network: Network, question: Question, evidence: Evidence) -> JudgedAnswer:
        key = (network.network_id, question.id, evidence.key)
        if key not in self._known:
            answer = self._answerer.answer(question, evidence)
            self._known[key] = JudgedAnswer(answer, self._judge.judge(question, answer), evidence.key)
        return self._known[key]
