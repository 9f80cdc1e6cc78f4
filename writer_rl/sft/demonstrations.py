"""What SFT shows: prompts with the completions a teacher would write, in batches of similar length.

Every batch is a function of the run's seed and of its place in the stream, so a resumed run sees what it would have seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from memory_env import MemoryState, Network
from memory_env.corpus import BiasRates, Conversation, generate
from memory_env.corpus.home import HOME
from memory_env.corpus.phrasebook import Phrasebook
from memory_env.corpus.sets import SFT_SEEDS, sft_shape
from memory_env.corpus.shapes import Shape
from memory_env.datafile import DataError
from memory_env.trajectory import ReferenceState
from rollout.tokenizer import Tokenizer
from rollout.writer_prompt import WriterPrompt
from writer_rl.model.batching import length
from writer_rl.model.tokenizer import actions_json
from writer_rl.train.data import TaughtNetwork

COPY_LENGTH = 20
COPIED = 6
SPELT, SPELT_SHARE = 10, 0.25
"""A copying sample shows COPY_LENGTH random tokens and asks for COPIED after two of them. In SPELT_SHARE of the samples there are
only SPELT different ones, as in words that are spelt: then the token before last decides where to go on."""
BATCHES_SORTED = 16
"""So many batches' samples are sorted by length together; the batches then come in random order."""
CONVERSATIONS = 400_000
"""Conversations of the embedded corpus that are set apart for each seed and stage."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A prompt and the completion to learn, stop token included.

    Example: ``Demonstration(prompt_ids=(5, 9, 3), completion_ids=(17, 4, 1))`` where 1 is the stop token.
    """

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]


Batches = list[list[Demonstration]]
Pool = Callable[[int], Batches]
"""Pool number k of a stream: its batches, in the order in which they are taken."""


class Stream:
    """Batches of one stage, pool after pool.

    Example: ``stream = Stream(pool); stream.next(); stream.place`` is ``(0, 1)``: pool 0, batch 1 comes next.
    """

    def __init__(self, pool: Pool, place: tuple[int, int] = (0, 0)) -> None:
        self._pool = pool
        self.place = place
        self._batches: Batches | None = None

    def next(self) -> list[Demonstration]:
        """The next batch."""
        number, index = self.place
        if self._batches is None:
            self._batches = self._pool(number)
        batch = self._batches[index]
        if index + 1 < len(self._batches):
            self.place = (number, index + 1)
        else:
            self.place, self._batches = (number + 1, 0), None
        return batch


def demonstrate(
    network: Network,
    actions: Sequence[Sequence[object]],
    states: Sequence[MemoryState | ReferenceState],
    prompt: WriterPrompt,
    max_new_tokens: int,
    window: int | None = None,
) -> list[Demonstration]:
    """One demonstration per position: the Writer's prompt about the teacher's own memory so far, and the teacher's actions.

    states[t]: the memory after position t. Raises DataError for a completion longer than `max_new_tokens`.
    """
    tokenizer, shown = prompt.tokenizer, []
    before = MemoryState.empty()
    for segment, chosen, after in zip(network.segments(window), actions, states, strict=True):
        prompt_ids = prompt.encode(before, segment, network.network_id).token_ids
        ids = (*tokenizer(actions_json(chosen), add_special_tokens=False)["input_ids"], tokenizer.eos_token_id)
        if len(ids) > max_new_tokens:
            raise DataError(
                f"network {network.network_id}, position {segment.position}: the teacher's output has {len(ids)} tokens, "
                f"rollout.max_new_tokens is {max_new_tokens}: raise it"
            )
        shown.append(Demonstration(prompt_ids, ids))
        before = cast(MemoryState, after)  # a reference state has all that an observation reads
    return shown


def network_demonstrations(
    networks: Sequence[TaughtNetwork], prompt: WriterPrompt, max_new_tokens: int, window: int | None = None
) -> list[Demonstration]:
    """One demonstration per position of every network."""
    return [
        sample
        for each in networks
        for sample in demonstrate(each.network, each.teacher.actions, each.teacher.states, prompt, max_new_tokens, window)
    ]


def batches_of(samples: Sequence[Demonstration], size: int, dice: random.Random) -> Batches:
    """All samples in random batches of `size` and similar lengths; the last ones may be smaller."""
    order = list(samples)
    dice.shuffle(order)
    batches: Batches = []
    for start in range(0, len(order), size * BATCHES_SORTED):
        alike = sorted(order[start : start + size * BATCHES_SORTED], key=length)
        batches += [alike[i : i + size] for i in range(0, len(alike), size)]
    dice.shuffle(batches)
    return batches


def network_pool(samples: Sequence[Demonstration], size: int, seed: str) -> Pool:
    """Each pool is one pass over the same samples."""
    return lambda number: batches_of(samples, size, random.Random(f"{seed}/{number}"))


def copy_pool(tokenizer: Tokenizer, vocabulary: int, size: int, seed: str) -> Pool:
    """Random token strings, then two of their tokens: the next ones are to be repeated.

    What a model must be able to do before it can record a value: find where a token stood, and go on from there.
    """
    opening = tokenizer.apply_chat_template([{"role": "user", "content": ""}], tokenize=False, add_generation_prompt=True)
    separator = tokenizer(opening, add_special_tokens=False)["input_ids"][-1]
    usable = sorted(set(range(vocabulary)) - set(tokenizer.all_special_ids))

    def demonstration(dice: random.Random) -> Demonstration:
        string = dice.sample(usable, min(COPY_LENGTH, len(usable)))
        if dice.random() < SPELT_SHARE:
            string = [dice.choice(string[:SPELT]) for _ in string]
        start = dice.randrange(2, len(string) - COPIED)
        return Demonstration((*string, separator, *string[start - 2 : start]), tuple(string[start : start + COPIED]))

    def pool(number: int) -> Batches:
        dice = random.Random(f"{seed}/{number}")
        return [[demonstration(dice) for _ in range(size)]]

    return pool


@dataclass(frozen=True)
class ConversationMix:
    """Which conversations of the embedded corpus a stage shows, and by which teacher.

    level: 0, 1 or 2, of the given shape. easier: the share of conversations from lower levels, in their own shapes. bias: None
    for the complete teacher. book: the language.
    """

    level: int
    shape: Shape
    easier: float = 0.0
    bias: BiasRates | None = None
    book: Phrasebook = HOME


def corpus_pool(mix: ConversationMix, prompt: WriterPrompt, max_new_tokens: int, size: int, seed: int, stage: int) -> Pool:
    """New conversations in every pool, about `BATCHES_SORTED` batches' worth."""
    conversations = max(1, size * BATCHES_SORTED // (2, 3, 5)[mix.level])
    first = (seed * 16 + stage) * CONVERSATIONS

    def pool(number: int) -> Batches:
        dice = random.Random(f"{seed}/{stage}/{number}")
        samples: list[Demonstration] = []
        for i in range(conversations):
            level = dice.randrange(mix.level) if mix.level and dice.random() < mix.easier else mix.level
            name = (first + number * conversations + i) % 10_000_000
            shape = mix.shape if level == mix.level else sft_shape(level)
            conversation = Conversation(*generate(SFT_SEEDS[level][0] + name, shape, book=mix.book))
            teacher = conversation.taught if mix.bias is None else conversation.biased(name, mix.bias)
            samples += demonstrate(conversation.network, teacher.actions, teacher.states, prompt, max_new_tokens)
        return [batch for batch in batches_of(samples, size, dice) if len(batch) == size]

    return pool
