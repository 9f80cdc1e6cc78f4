"""The named sets of the corpus: which seeds and shapes make training, held-out, validation and SFT networks.

The seed ranges do not meet, and so no conversation is in two sets. The frozen seeds were chosen so that every kind of fact and of
question occurs in both sets; no Writer was consulted.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory_env.corpus.shapes import LEVELS, Shape, noop, real, update_heavy

VALIDATION_SEEDS = (3_000_000, 4_000_000)  # first, end
SFT_SEEDS = ((10_000_000, 20_000_000), (20_000_000, 30_000_000), (30_000_000, 40_000_000))  # by curriculum level


@dataclass(frozen=True)
class Recipe:
    """One frozen network: its name, seed and shape."""

    name: str
    seed: int
    shape: Shape


def _train() -> tuple[Recipe, ...]:
    real_questions = (6, 8, 7, 5, 6, 6, 9, 8, 10, 12)
    recipes = [
        Recipe(f"train_real_{i + 1:02d}", 1_290 + i, real(5, n, late=i % 3 == 1, leave=i % 3 == 2))
        for i, n in enumerate(real_questions)
    ]
    recipes += [Recipe(f"train_update_{'abc'[i]}", 1_100 + i, update_heavy(6 + i, n)) for i, n in enumerate((4, 3, 3))]
    recipes += [Recipe(f"train_noop_{'ab'[i]}", 1_200 + i, noop(2 + i)) for i in range(2)]
    return tuple(recipes)


def _heldout() -> tuple[Recipe, ...]:
    sizes = ((48, 8), (40, 7), (30, 6), (28, 6), (28, 6), (28, 6), (27, 6), (27, 6), (25, 5), (24, 5))
    return tuple(
        Recipe(f"heldout_{i + 1:02d}", 2_170 + i, real(t, n, late=i % 2 == 0, leave=i % 3 != 2)) for i, (n, t) in enumerate(sizes)
    )


TRAIN: tuple[Recipe, ...] = _train()
HELDOUT: tuple[Recipe, ...] = _heldout()


def sft_shape(level: int) -> Shape:
    """The shape of a curriculum level: 0 two segments of 1-2 messages, 1 three small ones, 2 full conversations."""
    if level not in range(len(LEVELS)):
        raise ValueError(f"curriculum level {level}: choose 0, 1 or 2")
    return LEVELS[level]
