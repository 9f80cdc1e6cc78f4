"""What is asked of a group and what came of it: the records that `rewards.qa_gain` takes and gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_env.conversation import Question
from memory_env.query.protocol import Answer, Evidence, Verdict


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
