"""From the names in a configuration to networks and their reference states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_env import Network, TeacherTrajectory, check_disjoint, corpus, load_networks, load_trajectory
from memory_env.corpus.sets import PRACTICE_FIRST, PRACTICE_NETWORKS, VALIDATION_NETWORKS
from memory_env.datafile import DataError, read_json
from rewards import unseen_text_share
from writer_rl.config import DataSection, resolve
from writer_rl.config.section import PRACTICE
from writer_rl.train.missing import missing_networks, missing_trajectories, require_none


@dataclass(frozen=True)
class TaughtNetwork:
    """A training network, its T and the teacher's trajectory about it.

    Example: ``taught.teacher.states[t]`` is M*_t, the reference of position t < ``taught.length``.
    """

    network: Network
    length: int
    teacher: TeacherTrajectory


def load_training(settings: DataSection) -> tuple[TaughtNetwork, ...]:
    """The training networks with their references, in the order named.

    Raises DataError for a network that is also held out or used for validation, that appears twice, or that has no teacher.
    """
    networks = load_sources(settings.train)
    check_disjoint(networks, load_sources(settings.heldout))
    check_disjoint(networks, load_sources(settings.validation))
    return tuple(with_teachers(networks, settings))


def with_teachers(networks: Sequence[Network], settings: DataSection) -> list[TaughtNetwork]:
    """The networks with their teachers; DataError names one that has none, or none at all."""
    if not networks:
        raise DataError(f"data.train: {', '.join(settings.train) or 'empty'}: no networks")
    files = trajectory_files(settings.trajectories)
    return [TaughtNetwork(n, len(n.segments(settings.window)), _teacher(n, files, settings.window)) for n in networks]


def unseen_text_warning(networks: Iterable[TaughtNetwork], tokenizer: str) -> str | None:
    """A line about reference text that the reward's tokenizer can't see (accents, other scripts), if it matters (over 1 %)."""
    if tokenizer != "paper":
        return None
    contents = [record.content for each in networks for record in each.teacher.states[-1].derived()]
    share = unseen_text_share(contents)
    if share <= 0.01:
        return None
    return (
        f"{share:.0%} of the letters in the reference memories are invisible to the paper's tokenizer; consider "
        "--reward.tokenizer unicode"
    )


def load_sources(sources: Iterable[str]) -> list[Network]:
    """The networks of corpus names, files and folders; DataError where one id appears twice."""
    networks: dict[str, Network] = {}
    for source in sources:
        for network in _load(source):
            if network.network_id in networks:
                raise DataError(f"{source}: network {network.network_id!r} appears twice; name each source once")
            networks[network.network_id] = network
    return list(networks.values())


def trajectory_files(paths: Sequence[str]) -> dict[str, Path]:
    """The teacher files of files and folders, by network id."""
    found: dict[str, Path] = {}
    for name in paths:
        path = resolve(name)
        require_none(missing_trajectories([name]))
        for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
            content = read_json(file)
            network_id = content.get("network_id") if isinstance(content, dict) else None
            if not isinstance(network_id, str):
                raise DataError(f"{file}: no teacher trajectory: it has no network_id")
            if network_id in found:
                raise DataError(f"{file}: a second trajectory of {network_id!r}; the first is {found[network_id]}")
            found[network_id] = file
    return found


def _load(source: str) -> Sequence[Network]:
    if source == "corpus:train":
        return corpus.train_networks()
    if source == "corpus:heldout":
        return corpus.heldout_networks()
    if source == "corpus:unseen":
        return corpus.unseen_networks()
    if source == "corpus:validation":
        return corpus.validation_networks(VALIDATION_NETWORKS)
    if source == "corpus:practice":
        return corpus.validation_networks(PRACTICE_NETWORKS, PRACTICE_FIRST)
    if some := PRACTICE.fullmatch(source):
        if int(some[1]) > PRACTICE_NETWORKS:
            raise DataError(f"{source}: corpus:practice has {PRACTICE_NETWORKS} networks")
        return corpus.validation_networks(int(some[1]), PRACTICE_FIRST)
    require_none(missing_networks([source]))
    return load_networks(resolve(source))


def _teacher(network: Network, files: Mapping[str, Path], window: int | None) -> TeacherTrajectory:
    if network.network_id in files:
        return load_trajectory(files[network.network_id], network, window)
    try:
        teacher = corpus.teacher(network)
    except DataError:
        raise DataError(f"network {network.network_id!r}: no teacher trajectory; add its file to data.trajectories") from None
    if len(teacher.states) != len(network.segments(window)):
        raise DataError(f"network {network.network_id!r}: the corpus has one segment per session; set data.window to null")
    return teacher
