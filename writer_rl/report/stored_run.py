"""A run as it lies on the disk: its configuration, the networks its rounds are about, its rounds with their memories again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_env import DataError, MemoryState
from memory_env.replay import Completion, WrittenStep, write
from writer_rl.config import DataSection, GRPOConfig, load_config
from writer_rl.run.directory import RunDirectory, RunError
from writer_rl.run.rollout_files import CompletionRecord, RoundRecords, read_round, round_numbers
from writer_rl.train.data import TaughtNetwork, load_sources, with_teachers


def run_name(path: Path) -> str:
    """The folder, with its parent where that says more.

    Example: "runs/demo/grpo" is "demo/grpo", "runs/3b" is "3b".
    """
    resolved = path.resolve()
    return f"{resolved.parent.name}/{resolved.name}" if resolved.name in ("grpo", "sft", "run") else resolved.name


@dataclass(frozen=True)
class StoredGroup:
    """The G trajectories of one network in one round, with the states that their texts make again.

    records, steps: [G][T]; differing: completions whose report is another one today than when they were written.

    Example: ``group.steps[g][t].post_state`` is the memory after ``group.records[g][t].text``.
    """

    taught: TaughtNetwork
    records: tuple[tuple[CompletionRecord, ...], ...]
    steps: tuple[tuple[WrittenStep[Completion], ...], ...]
    questions: tuple[Any, ...] = ()
    differing: int = 0

    @property
    def network_id(self) -> str:
        return self.taught.network.network_id

    @property
    def gains(self) -> list[float | None]:
        """R_QA of each trajectory, None where nothing was asked."""
        return [row[0].qa_gain for row in self.records]


@dataclass(frozen=True)
class StoredRound:
    """One round: its groups in the order they were trained on."""

    number: int
    groups: tuple[StoredGroup, ...]


class StoredRun:
    """A GRPO run's directory, read only.

    Raises RunError for a folder that is none, ConfigError for a config.yaml this version can't read.

    Example: ``StoredRun(Path("runs/demo/grpo")).round(3).groups[0].records[0][0].advantage``
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.numbers = round_numbers(path)
        if not (path / "config.yaml").is_file():
            raise RunError(f"{path}: holds no config.yaml, so that nobody knows its networks; name a run directory")
        config = load_config("grpo", path / "config.yaml")
        assert isinstance(config, GRPOConfig)
        self.config = config
        self._taught: dict[str, TaughtNetwork] = {}

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl; [] where there are none."""
        return RunDirectory(self.path).read_metrics()

    def read(self, numbers: Sequence[int]) -> list[RoundRecords]:
        """The rounds' lines. RunError for a round that is not there or whose last line was torn."""
        found = [read_round(self.path, number) for number in numbers]
        for each in found:
            if each.cut:
                raise RunError(
                    f"{self.path}: round {each.number}: the last line is cut (a killed run); resume the run or leave it out"
                )
        return found

    def round(self, number: int) -> StoredRound:
        """One round with its memories."""
        return self.rounds([number])[0]

    def rounds(self, numbers: Sequence[int] | None = None) -> list[StoredRound]:
        """Rounds with their memories; all by default. Raises RunError and DataError as `read` and `replay_group` do."""
        read = self.read(self.numbers if numbers is None else numbers)
        self._learn(name for each in read for name in each.networks())
        return [self._replayed(each) for each in read]

    def _learn(self, names: Iterable[str]) -> None:
        """Load the networks not known yet: of a run on hundreds, a round is about a few."""
        wanted = set(names) - set(self._taught)
        if not wanted:
            return
        networks = [n for n in load_sources(self.config.data.train) if n.network_id in wanted]
        missing = sorted(wanted - {n.network_id for n in networks})
        if missing:
            raise DataError(
                f"{self.path}: network {missing[0]!r} of its rounds is not among its data.train; put the data back where "
                "config.yaml says"
            )
        self._taught |= {each.network.network_id: each for each in with_teachers(networks, self.config.data)}

    def _replayed(self, records: RoundRecords) -> StoredRound:
        asked: dict[str, list[Any]] = {}
        for question in records.questions:
            asked.setdefault(question["network_id"], []).append(question)
        groups = [
            replay_group(self._taught[name], lines, self.config.data, asked.get(name, ()))
            for name, lines in records.networks().items()
        ]
        return StoredRound(records.number, tuple(groups))


def chosen_rounds(run: StoredRun, text: str | None) -> list[int]:
    """The stored rounds that `text` ("3", "10-20", "-5", "50-"; None: all) names. RunError for a range without one.

    Example: of rounds 1 to 60, "58-" is [58, 59, 60].
    """
    if text is None:
        return run.numbers
    match = re.fullmatch(r"(\d*)-(\d*)|(\d+)", text.strip())
    if match is None or text.strip() == "-":
        raise RunError(f"--rounds {text}: give a round or a range of them, e.g. 3 or 10-20")
    first, last, single = match.groups()
    if single:
        return [int(single)]
    low, high = int(first or run.numbers[0]), int(last or run.numbers[-1])
    found = [number for number in run.numbers if low <= number <= high]
    if not found:
        raise RunError(f"{run.path}: has no round in {text}; there are {run.numbers[0]} to {run.numbers[-1]}")
    return found


def replay_group(
    network: TaughtNetwork, lines: Sequence[CompletionRecord], data: DataSection, questions: Sequence[Any] = ()
) -> StoredGroup:
    """The group of `lines` (by trajectory and position) with its states.

    A completion is replayed from the memory of its own trajectory, or of the one it was forked from. RunError where positions
    are missing, DataError where the network has another number of them.
    """
    name = network.network.network_id
    rows: dict[int, list[CompletionRecord]] = {}
    for line in lines:
        rows.setdefault(line.trajectory, []).append(line)
    expected = list(range(network.length))
    for trajectory, row in rows.items():
        found = [line.position for line in row]
        if found != expected:
            raise RunError(
                f"network {name!r}, trajectory {trajectory}: has positions {found}, the network has {network.length}; the round "
                "is incomplete or the network is another one than the run's"
            )
    segments = network.network.segments(data.window)
    before: dict[int, MemoryState] = dict.fromkeys(rows, MemoryState.empty())
    steps: dict[int, list[WrittenStep[Completion]]] = {trajectory: [] for trajectory in rows}
    differing = 0
    for segment in segments:
        after = {}
        for trajectory, row in rows.items():
            line = row[segment.position]
            start = before[trajectory if line.forked_from is None else line.forked_from]
            output = Completion(line.text, line.finish_reason == "length")
            (made,) = write([segment], lambda state, segment, output=output: output, strict=data.strict, start=start)  # type: ignore[misc]
            differing += made.report.to_dict() != line.report
            steps[trajectory].append(made)
            after[trajectory] = made.post_state
        before = after
    return StoredGroup(
        network, tuple(tuple(r) for r in rows.values()), tuple(tuple(s) for s in steps.values()), tuple(questions), differing
    )
