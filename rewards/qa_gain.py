"""What the derived memory adds to answering: the terminal question gain of a group (Eq. 8, 22).

All trajectories of a group share their messages, so System 1 alone is answered and judged once per question, not once
per trajectory; equal evidence is answered once, and equal answers to a question are judged once. For G = 8 and 4
questions that is at most (8 + 1) * 4 answers and as many judgments: 72 calls of the 128 (56.25 %) that answering and
judging two evidences per trajectory would cost.

A call that fails is an error, never a wrong answer: its question is left out for the whole group, so that the
trajectories stay comparable.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool
from typing import Any, Protocol, TypeVar

from memory_env.conversation import Question
from memory_env.query.protocol import Answer, Answerer, Evidence, Judge, JudgeError, Verdict

_log = logging.getLogger(__name__)


class Retrieval(Protocol):
    """The part of `memory_env.query.pipeline.QueryPipeline` that is needed here. Thread-safe."""

    def index_group(self, memories: Sequence[Any]) -> Sequence[Any]:
        """One index per final state of a group."""
        ...

    def evidence(self, question: str, index: Any) -> Evidence:
        """Evidence of both tracks; its `verbatim_only()` is the same System 1 evidence alone. May raise JudgeError."""
        ...


@dataclass(frozen=True, slots=True)
class QAGroup:
    """What is asked about one network: its questions (all of them) and the final states M_T of its G trajectories.

    Example: QAGroup("grp_0d1e2f3a", network.questions, [t.steps[-1].post_state for t in trajectories]).
    """

    network_id: str
    questions: Sequence[Question]
    memories: Sequence[Any]


@dataclass(frozen=True, slots=True)
class QAError:
    """Why a question was left out. `stage`: "project", "select", "sufficiency", "answer" or "judge"."""

    network_id: str
    question_id: str
    stage: str
    reason: str

    def __str__(self) -> str:
        return f"{self.network_id} {self.question_id}: {self.stage} failed: {self.reason}"


@dataclass(frozen=True, slots=True)
class QAExchange:
    """One evidence of a question with its answer and verdict, and the trajectories that share it. `track`: "both" or "s1".

    Example: QAExchange("s1", (0, 1, 2), evidence, Answer("nothing recorded"), Verdict(False, 0.0)).
    """

    track: str
    trajectories: tuple[int, ...]
    evidence: Evidence
    answer: Answer
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class QATranscript:
    """All that was said about one question of a group. `error` is why it was left out, and then there is no exchange."""

    question: Question
    exchanges: tuple[QAExchange, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class QAGain:
    """The terminal gain of one group of G trajectories, and what it cost.

    gains: [G], R_QA of Eq. 8 in [-1, 1]; all 0 if no question could be judged.
    both, s1: [G], QA of Eq. 22 in [0, 1] with both tracks and with System 1 alone (the latter is the same for all).
    questions: how many were selected (k). failed: how many of them were left out; `errors` has the first error of each.
    calls: answers and judgments that were asked for, failed ones included; a backend's own retries and cache hits are
    not told apart. naive_calls: 4 G k, an answer and a judgment for both evidences of every trajectory and question.

    Example: G = 2 and one question, answered rightly only with the first memory: gains=(1.0, 0.0), both=(1.0, 0.0),
    s1=(0.0, 0.0), questions=1, failed=0, calls=6, naive_calls=8.
    """

    network_id: str
    gains: tuple[float, ...]
    both: tuple[float, ...]
    s1: tuple[float, ...]
    questions: int
    failed: int
    calls: int
    naive_calls: int
    errors: tuple[QAError, ...] = ()
    transcripts: tuple[QATranscript, ...] = field(default=(), compare=False, repr=False)
    """What was read, answered and judged, question by question; for people, nothing is computed from it."""

    @property
    def judged(self) -> int:
        """Questions that the means are over; 0 means that there is no gain to speak of."""
        return self.questions - self.failed


class QAFailure(RuntimeError):
    """More questions could not be judged than `allowed_failures`. No gain was computed; the rollouts are unharmed."""

    def __reduce__(self) -> tuple[type, tuple]:  # ranks send it to each other
        return type(self), (self.errors, self.questions, self.max_failure_rate)

    def __init__(self, errors: Sequence[QAError], questions: int, max_failure_rate: float):
        self.errors, self.questions, self.max_failure_rate = tuple(errors), questions, max_failure_rate
        super().__init__(
            f"{len(errors)} of {questions} questions could not be judged, {allowed_failures(questions, max_failure_rate)} may "
            f"fail (max_failure_rate {max_failure_rate:g}): {errors[-1]}; when the answerer and judge work again, resume"
        )


def allowed_failures(questions: int, rate: float) -> int:
    """The share `rate` of the questions, rounded up: one failure alone says little about an endpoint.

    Example: with a rate of 0.2, one of 1 to 5 questions may fail, two of 6 to 10; with 0.0 none.
    """
    return math.ceil(round(rate * questions, 9))  # 0.07 * 100 is a hair above 7


def select_questions(questions: Sequence[Question], limit: int = 4) -> tuple[Question, ...]:
    """The fixed subset of Eq. 22: ids sorted as strings, then index floor(i n / k) for i < k = min(limit, n).

    Example: of ids q1, q10, q2, q3, q4, q5 (as strings in that order) and limit 4: q1, q10, q3, q4.
    """
    ordered = sorted(questions, key=lambda question: str(question.id))
    count = min(limit, len(ordered))
    return tuple(ordered[place * len(ordered) // count] for place in range(count))


def qa_gain(
    groups: Sequence[QAGroup],
    retrieval: Retrieval,
    answerer: Answerer,
    judge: Judge,
    *,
    max_questions: int = 4,
    concurrency: int = 8,
    max_failure_rate: float = 0.5,
) -> list[QAGain]:
    """The gain of each group, in their order; at most `concurrency` retrievals, answers or judgments at a time.

    The gains do not depend on which call ends first; where something failed, `calls` and the error that is kept may: a
    question that is left out is not asked further. Raises QAFailure as soon as more than `allowed_failures` of the
    selected questions of all groups have failed. Whatever else a part raises comes through, and no more calls start.
    """
    asked = [_Asked(place, group, select_questions(group.questions, max_questions)) for place, group in enumerate(groups)]
    pool = ThreadPool(concurrency)  # daemon threads: a call that hangs does not keep a stopped run from ending
    try:
        calls = _Calls(pool, asked, max_failure_rate)
        found = _evidences(asked, retrieval, calls)
        judged = _judged(asked, found, answerer, judge, calls)
    finally:
        pool.terminate()
    return [_gain(one, found, judged, calls) for one in asked]


@dataclass(frozen=True, slots=True)
class _Asked:
    place: int
    group: QAGroup
    questions: tuple[Question, ...]

    @property
    def keys(self) -> list[Key]:
        return [(self.place, number) for number in range(len(self.questions))]


Key = tuple[int, int]  # place of the group, place of the question among the selected
Work = tuple[Key, Callable[..., Any], tuple[Any, ...]]
Place = tuple[Key, int, str]  # a question, the number of a trajectory, and the track: BOTH or S1
BOTH, S1 = "both", "s1"
WorkKey = TypeVar("WorkKey", bound=Hashable)


class _Calls:
    """Runs calls in the pool, counts them, and keeps the first error of every question."""

    def __init__(self, pool: ThreadPool, asked: Sequence[_Asked], max_failure_rate: float):
        self._pool, self._max_failure_rate = pool, max_failure_rate
        self._asked = asked
        self._questions = sum(len(one.questions) for one in asked)
        self._allowed = allowed_failures(self._questions, max_failure_rate)
        self._lock = threading.Lock()
        self.made: Counter[int] = Counter()
        self.errors: dict[Key, QAError] = {}

    def run(self, work: Mapping[WorkKey, Work], stage: str, *, counted: bool) -> dict[WorkKey, Any]:
        """The result of every piece of work whose question has not failed, by the key of the work."""

        def attempt(item: tuple[WorkKey, Work]) -> tuple[WorkKey, Any]:
            return item[0], self._attempt(stage, counted, *item[1])

        results: dict[WorkKey, Any] = {}
        for key, result in self._pool.imap_unordered(attempt, work.items()):
            results[key] = result
            if len(self.errors) > self._allowed:
                raise QAFailure(list(self.errors.values()), self._questions, self._max_failure_rate)
        return {key: results[key] for key in work if work[key][0] not in self.errors}

    def _attempt(self, stage: str, counted: bool, key: Key, function: Callable[..., Any], arguments: tuple) -> Any:
        if key in self.errors:
            return None
        if counted:
            with self._lock:
                self.made[key[0]] += 1
        try:
            return function(*arguments)
        except JudgeError as error:
            one = self._asked[key[0]]
            failed = QAError(one.group.network_id, one.questions[key[1]].id, error.stage or stage, error.reason)
            with self._lock:
                self.errors.setdefault(key, failed)
            return None


def _evidences(asked: Sequence[_Asked], retrieval: Retrieval, calls: _Calls) -> dict[Place, Evidence]:
    """The evidence that is answered from."""
    work: dict[tuple[Key, int], Work] = {}
    for one in asked:
        if not one.questions:
            continue
        for trajectory, index in enumerate(retrieval.index_group(one.group.memories)):
            for key, question in zip(one.keys, one.questions, strict=True):
                work[key, trajectory] = (key, retrieval.evidence, (question.question, index))
    found: dict[Place, Evidence] = {}
    for (key, trajectory), evidence in calls.run(work, "retrieval", counted=False).items():
        found[key, trajectory, BOTH] = evidence
        found[key, trajectory, S1] = evidence.verbatim_only()
    return found


def _judged(
    asked: Sequence[_Asked], found: Mapping[Place, Evidence], answerer: Answerer, judge: Judge, calls: _Calls
) -> dict[Place, tuple[Answer, Verdict]]:
    """The same keys as `found`, without the questions that failed -> the answer and its verdict."""
    questions = {key: question for one in asked for key, question in zip(one.keys, one.questions, strict=True)}
    digests = {place: evidence.key for place, evidence in found.items()}
    to_answer: dict[tuple[Key, str], Work] = {}
    for place, evidence in found.items():
        key = place[0]
        to_answer.setdefault((key, digests[place]), (key, answerer.answer, (questions[key], evidence)))
    answers = calls.run(to_answer, "answer", counted=True)
    to_judge: dict[tuple[Key, Answer], Work] = {}
    for (key, _), answer in answers.items():
        to_judge.setdefault((key, answer), (key, judge.judge, (questions[key], answer)))
    judged = calls.run(to_judge, "judge", counted=True)
    results = {}
    for place, digest in digests.items():
        if place[0] not in calls.errors:
            answer = answers[place[0], digest]
            results[place] = (answer, judged[place[0], answer])
    return results


def _gain(
    one: _Asked, found: Mapping[Place, Evidence], judged: Mapping[Place, tuple[Answer, Verdict]], calls: _Calls
) -> QAGain:
    size, selected = len(one.group.memories), len(one.questions)
    errors = tuple(calls.errors[key] for key in one.keys if key in calls.errors)
    keys = [key for key in one.keys if key not in calls.errors]
    if not keys:
        _log.warning("%s: no question could be judged (%d asked): its terminal gain is 0", one.group.network_id, selected)
    both, s1 = ([sum(bool(judged[key, g, track][1].correct) for key in keys) for g in range(size)] for track in (BOTH, S1))
    count = max(1, len(keys))
    return QAGain(
        network_id=one.group.network_id,
        gains=tuple((with_both - alone) / count for with_both, alone in zip(both, s1, strict=True)),
        both=tuple(correct / count for correct in both),
        s1=tuple(correct / count for correct in s1),
        questions=selected,
        failed=len(errors),
        calls=calls.made[one.place],
        naive_calls=4 * size * selected,
        errors=errors,
        transcripts=tuple(_transcript(one, key, found, judged, calls) for key in one.keys),
    )


def _transcript(
    one: _Asked,
    key: Key,
    found: Mapping[Place, Evidence],
    judged: Mapping[Place, tuple[Answer, Verdict]],
    calls: _Calls,
) -> QATranscript:
    question = one.questions[key[1]]
    if key in calls.errors:
        return QATranscript(question, (), str(calls.errors[key]))
    shared: dict[tuple[str, Evidence], list[int]] = {}
    for track in (S1, BOTH):
        for g in range(len(one.group.memories)):
            shared.setdefault((track, found[key, g, track]), []).append(g)
    exchanges = (QAExchange(track, tuple(g), e, *judged[key, g[0], track]) for (track, e), g in shared.items())
    return QATranscript(question, tuple(exchanges))
