"""The named sets of the corpus: which seeds, shapes and languages make training, held-out, unseen, validation and SFT networks.

The seed ranges do not meet, and so no conversation is in two sets. The frozen seeds were chosen so that every kind of fact and of
question occurs in every set; no Writer was consulted.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory_env.corpus.home import HOME
from memory_env.corpus.phrasebook import Phrasebook
from memory_env.corpus.shapes import LEVELS, Shape, noop, real, update_heavy
from memory_env.corpus.unseen import UNSEEN as UNSEEN_BOOK

VALIDATION_SEEDS = (3_000_000, 4_000_000)  # first, end
VALIDATION_NETWORKS = 48
PRACTICE_NETWORKS, PRACTICE_FIRST = 225, 1_000
"""Sizes of corpus:validation and corpus:practice, and the latter's first number in the validation range, far from the former."""
SFT_SEEDS = ((10_000_000, 20_000_000), (20_000_000, 30_000_000), (30_000_000, 40_000_000))  # by curriculum level


@dataclass(frozen=True)
class Recipe:
    """One network: its name, seed, shape and language."""

    name: str
    seed: int
    shape: Shape
    book: Phrasebook = HOME


def _train() -> tuple[Recipe, ...]:
    real_questions = (6, 8, 7, 5, 6, 6, 9, 8, 10, 12)
    recipes = [
        Recipe(f"train_real_{i + 1:02d}", 1_290 + i, real(5, n, late=i % 3 == 1, leave=i % 3 == 2))
        for i, n in enumerate(real_questions)
    ]
    recipes += [Recipe(f"train_update_{'abc'[i]}", 1_100 + i, update_heavy(6 + i, n)) for i, n in enumerate((4, 3, 3))]
    recipes += [Recipe(f"train_noop_{'ab'[i]}", 1_200 + i, noop(2 + i)) for i in range(2)]
    return tuple(recipes)


def _tested(name: str, first_seed: int, book: Phrasebook) -> tuple[Recipe, ...]:
    """Ten networks to test on: as many questions each as the published held-out networks have."""
    sizes = ((48, 8), (40, 7), (30, 6), (28, 6), (28, 6), (28, 6), (27, 6), (27, 6), (25, 5), (24, 5))
    return tuple(
        Recipe(f"{name}_{i + 1:02d}", first_seed + i, real(t, n, late=i % 2 == 0, leave=i % 3 != 2), book)
        for i, (n, t) in enumerate(sizes)
    )


TRAIN: tuple[Recipe, ...] = _train()
HELDOUT: tuple[Recipe, ...] = _tested("heldout", 2_170, HOME)
UNSEEN: tuple[Recipe, ...] = _tested("unseen", 2_640, UNSEEN_BOOK)


def sft_shape(level: int) -> Shape:
    """The shape of a curriculum level: 0 two segments of 1-2 messages, 1 three small ones, 2 full conversations."""
    if level not in range(len(LEVELS)):
        raise ValueError(f"curriculum level {level}: choose 0, 1 or 2")
    return LEVELS[level]
