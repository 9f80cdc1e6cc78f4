"""Who asks and judges the terminal questions in training: the frozen query pipeline, as a configuration says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from memory_env import Network
from rewards.qa_gain import qa_gain
from rewards.qa_results import QAFailure, QAGain, QAGroup
from writer_rl.config import DataSection, QASection, SharedConfig
from writer_rl.evaluation.asking import asked_otherwise, open_asking
from writer_rl.evaluation.frozen import frozen_hashes
from writer_rl.grpo.groups import ScoredTrajectory, final_states
from writer_rl.train.data import TaughtNetwork
from writer_rl.train.distributed import World


class Questions:
    """Asks a group's questions; calling it gives the terminal gain (Eq. 8) of each group, in their order.

    cache: the file of an endpoint's responses, so that a round begun again asks nothing twice.
    Raises DataError or ConfigError for an endpoint without a model, address or key, or a model that nobody asks; a call may
    raise `rewards.qa_results.QAFailure`.

    Example: ``Questions(config.reward.qa, run / "responses.sqlite")([QAGroup(network_id, questions, final_states)])[0].gains``
    """

    def __init__(self, settings: QASection, cache: Path) -> None:
        self._settings = settings
        self._asking = open_asking(settings, "reward.qa", cache)
        self._backend, self._pipeline = self._asking.backend, self._asking.pipeline()

    def __call__(self, groups: Sequence[QAGroup]) -> list[QAGain]:
        return qa_gain(
            groups,
            self._pipeline,
            self._backend.answerer,
            self._backend.judge,
            max_questions=self._settings.max_questions,
            concurrency=self._asking.concurrency,
            max_failure_rate=self._settings.max_failure_rate,
        )

    def frozen(self, networks: Iterable[Network]) -> dict[str, str]:
        """Hashes of questions, prompts, budgets and judge: what has to stay the same over a whole run."""
        return frozen_hashes(networks, self._pipeline, self._backend.answerer, self._backend.judge)


def asking_line(config: SharedConfig) -> str | None:
    """How the reward asks otherwise than the evaluation will, in one line; None where it does not, or asks nothing."""
    reward = config.reward.qa
    found = asked_otherwise(reward, config.evaluation) if reward.enabled else None
    return f"the reward's questions are asked otherwise than the evaluation's: {found}" if found else None


def ask_round(
    questions: Questions | None,
    names: Sequence[str],
    scored: Sequence[ScoredTrajectory],
    data: Mapping[str, TaughtNetwork],
    settings: DataSection,
    world: World,
) -> dict[str, QAGain]:
    """The terminal gain of each network, by id; {} without questions. Collective: each rank asks about whole groups.

    scored: all trajectories of the round. Raises QAFailure on every rank if any could not judge.
    """
    if questions is None:
        return {}
    groups = []
    for name in names[world.rank :: world.size]:
        network = data[name].network
        group = sorted((t for t in scored if t.network_id == name), key=lambda t: t.index)
        groups.append(QAGroup(name, network.questions, final_states(group, network, settings.window, settings.strict)))
    try:
        answer: list[QAGain] | QAFailure = questions(groups)
    except QAFailure as failure:
        answer = failure
    gains: dict[str, QAGain] = {}
    for part in world.gather(answer):
        if isinstance(part, QAFailure):
            raise part
        gains |= {gain.network_id: gain for gain in part}
    return gains
