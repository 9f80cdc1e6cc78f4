"""A generated conversation with its teachers, found again from its name alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from memory_env.corpus.generator import generate
from memory_env.corpus.plan import Plan
from memory_env.corpus.reference import BiasRates, TeacherRun, biased_actions, complete_actions
from memory_env.corpus.sets import HELDOUT, SFT_SEEDS, TRAIN, UNSEEN, VALIDATION_SEEDS, Recipe, sft_shape
from memory_env.corpus.wide import NOISY, WIDE
from memory_env.datafile import DataError
from memory_env.network import Network


@dataclass(frozen=True)
class Conversation:
    """A network, the plan it came from, and what teachers write about it."""

    network: Network
    plan: Plan

    @cached_property
    def taught(self) -> TeacherRun:
        """The complete teacher: `actions`, `reports` and `states` per position."""
        return complete_actions(self.network, self.plan)

    def biased(self, seed: int, rates: BiasRates | Mapping[str, float] | None = None) -> TeacherRun:
        """The under-writing teacher (see `BiasRates`)."""
        return biased_actions(self.network, self.plan, seed, rates)


def from_recipe(recipe: Recipe) -> Conversation:
    return Conversation(*generate(recipe.seed, recipe.shape, recipe.name, recipe.book))


def generate_sft(seed: int, level: int) -> Conversation:
    """SFT conversation number `seed` (0 to 9,999,999) of curriculum level 0, 1 or 2; its name is `sft<level>_<seed>`."""
    shape = sft_shape(level)
    return from_recipe(Recipe(f"sft{level}_{seed:07d}", _within(SFT_SEEDS[level], seed, "SFT"), shape))


def generate_base(seed: int, level: int) -> Conversation:
    """That number and level in a language of the base stage, noisy if it is odd; its name is `base<level>_<seed>`."""
    book = NOISY if seed % 2 else WIDE
    return from_recipe(Recipe(f"base{level}_{seed:07d}", _within(SFT_SEEDS[level], seed, "base"), sft_shape(level), book))


def generate_validation(seed: int) -> Conversation:
    """Full-size conversation number `seed` (0 to 999,999) for evaluation during training; its name is `val_<seed>`."""
    return from_recipe(Recipe(f"val_{seed:06d}", _within(VALIDATION_SEEDS, seed, "validation"), sft_shape(2)))


def conversation(network_id: str) -> Conversation:
    """The conversation of that name, from any of the sets; DataError if the corpus has none."""
    for recipe in TRAIN + HELDOUT + UNSEEN:
        if recipe.name == network_id:
            return from_recipe(recipe)
    prefix, _, number = network_id.partition("_")
    if number.isdigit():
        if prefix == "val":
            return generate_validation(int(number))
        if prefix in ("sft0", "sft1", "sft2"):
            return generate_sft(int(number), int(prefix[3]))
        if prefix in ("base0", "base1", "base2"):
            return generate_base(int(number), int(prefix[4]))
    raise DataError(f"network {network_id}: not part of the embedded corpus; `python launch/corpus.py list` names what is")


def _within(seeds: tuple[int, int], number: int, what: str) -> int:
    first, end = seeds
    if not 0 <= number < end - first:
        raise ValueError(f"{what} seed {number}: must be from 0 to {end - first - 1}")
    return first + number
