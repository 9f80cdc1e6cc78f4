"""The embedded corpus: generated group chats whose reference memory is known by construction (see docs/corpus.md)."""

from __future__ import annotations

from memory_env.corpus.conversations import Conversation, conversation, generate_base, generate_sft, generate_validation
from memory_env.corpus.frozen import DATA
from memory_env.corpus.generator import generate
from memory_env.corpus.home import HOME
from memory_env.corpus.reference import BiasRates, biased_actions, complete_actions
from memory_env.corpus.sets import HELDOUT, TRAIN, UNSEEN
from memory_env.corpus.vocabulary import vocabulary
from memory_env.corpus.wide import NOISY, WIDE
from memory_env.loader import load_network
from memory_env.network import Network
from memory_env.trajectory import TeacherTrajectory, load_trajectory, replay_teacher

LANGUAGES = {book.name: book for book in (HOME, WIDE, NOISY)}
"""The languages that a Writer may be trained on, by name."""

__all__ = [
    "DATA",
    "LANGUAGES",
    "BiasRates",
    "Conversation",
    "biased_actions",
    "complete_actions",
    "conversation",
    "generate",
    "generate_base",
    "generate_sft",
    "generate_validation",
    "heldout_networks",
    "teacher",
    "train_networks",
    "unseen_networks",
    "validation_networks",
    "vocabulary",
]


def train_networks() -> tuple[Network, ...]:
    """The 15 frozen training networks (73 segments, 89 questions)."""
    return tuple(load_network(DATA / "train" / f"{recipe.name}.json") for recipe in TRAIN)


def heldout_networks() -> tuple[Network, ...]:
    """The 10 frozen held-out networks (305 questions)."""
    return tuple(load_network(DATA / "heldout" / f"{recipe.name}.json") for recipe in HELDOUT)


def unseen_networks() -> tuple[Network, ...]:
    """The 10 frozen networks (305 questions) that share no name, value or wording with anything a Writer is trained on."""
    return tuple(load_network(DATA / "unseen" / f"{recipe.name}.json") for recipe in UNSEEN)


def validation_networks(count: int, first: int = 0) -> tuple[Network, ...]:
    """`count` full-size networks that are in no other set, for evaluation during training."""
    return tuple(generate_validation(first + i).network for i in range(count))


def teacher(network: Network) -> TeacherTrajectory:
    """What a perfect Writer does about a network of this corpus, with the state M*_t after every position.

    Read from the frozen files for training, held-out and unseen networks, generated again for the others. DataError for a network
    of another corpus.
    """
    frozen = DATA / "trajectories" / f"{network.network_id}.json"
    if frozen.is_file():
        actions = load_trajectory(frozen, network).actions
        return TeacherTrajectory(network.network_id, actions, replay_teacher(network, actions))
    taught = conversation(network.network_id).taught
    return TeacherTrajectory(network.network_id, taught.actions, taught.states)
