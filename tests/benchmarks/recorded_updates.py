"""The samples of one update, made from the embedded corpus alone: what trainers replay when they are compared.

Eight trajectories write each conversation as its teacher does, a little differently each: actions left out, reworded or swapped. So
their memories, and with them their later prompts, part as those of a trained Writer's group do. Everything is seeded; texts
become tokens through a byte-level BPE trained on these very texts, so that nothing depends on a tokenizer in the repository.
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from memory_env import MemoryState, Network, PromptTemplate, Segment, corpus, observe, step
from writer_rl.config import ROOT
from writer_rl.grpo.samples import Sample

GROUP = 8
SPECIAL = ["<pad>", "<end>", "<user>", "<writer>"]
VOCABULARY = {"demo": 1400, "writer": 4096}
"""Sizes of the two tokenizers: about that of the tiny Writer, and one that reads English instructions."""
ROWS = {
    "demo": ("demo", "prompts of the demo (tiny_writer.jinja)"),
    "writer": ("writer", "long prompts (writer.jinja)"),
    "ragged": ("ragged", "random tokens, heads that part, completions of 30 to 150"),
    "equal": ("equal", "random tokens, prompts of 600, completions of 90"),
}
"""Row of the benchmark: its kind, and in words."""
NETWORKS = {"1M": {"demo": 4, "writer": 2}, "25M": {"demo": 1, "writer": 1}}
POSITIONS = {"1M": (0, 1, 2, 3, 4), "25M": (1, 3)}
"""How much of it for a model of this size: conversations, or positions of random tokens."""
KEEP, REWORD, SWAP = 0.93, 0.12, 0.10
"""How siblings differ: the share of actions kept, of contents with another word, of outputs with two actions swapped."""


def recorded(row: str, size: str = "1M") -> list[Sample]:
    """The samples of a row, groups of eight at the same position, advantages of mean 0; a pure function of its arguments."""
    kind = ROWS[row][0]
    if kind in ("ragged", "equal"):
        return _random_tokens(kind == "equal", POSITIONS[size])
    return _conversations(kind, NETWORKS[size][kind])


def vocabulary_of(row: str) -> int:
    """Ids below this occur."""
    return VOCABULARY["writer" if row == "writer" else "demo"]


def _random_tokens(equal: bool, positions: Sequence[int]) -> list[Sample]:
    dice = random.Random(7)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(dice.randrange(len(SPECIAL), VOCABULARY["demo"]) for _ in range(count))

    system, found = ids(250), []
    for position in positions:
        shared, heads = ids(250 if equal else 150), [ids(18) for _ in range(6 * position)]
        advantages = _advantages(dice)
        for trajectory in range(GROUP):
            if equal:
                prompt, completion = system + shared + ids(100), ids(90)
            else:
                kept = [head if dice.random() < 0.85 else ids(dice.randrange(12, 24)) for head in heads]
                prompt, completion = system + shared + sum(kept, ()), ids(dice.randrange(30, 150))
            found.append(_sample("random", trajectory, position, prompt, completion, advantages[trajectory]))
    return found


def _conversations(kind: str, networks: int) -> list[Sample]:
    encode = tokenizer(kind, networks)
    dice = random.Random(kind)
    found = []
    for network, trajectories in written(kind, networks):
        for position in range(len(trajectories[0])):
            advantages = _advantages(dice)
            for number, steps in enumerate(trajectories):
                prompt, completion = steps[position]
                ids = encode(prompt), (*encode(completion), SPECIAL.index("<end>"))
                found.append(_sample(network.network_id, number, position, *ids, advantages[number]))
    return found


@lru_cache(maxsize=4)
def written(kind: str, networks: int) -> list[tuple[Network, list[list[tuple[str, str]]]]]:
    """Of each network and each of its eight trajectories: (prompt, completion) at every position, as texts."""
    name = {"demo": "tiny_writer.jinja", "writer": "writer.jinja"}[kind]
    template = PromptTemplate.load(ROOT / "configs" / "prompts" / name)
    dice = random.Random(f"{kind}/{networks}")
    chosen = corpus.train_networks()[:networks]
    return [(network, [_trajectory(network, template, dice) for _ in range(GROUP)]) for network in chosen]


def _trajectory(network: Network, template: PromptTemplate, dice: random.Random) -> list[tuple[str, str]]:
    state, steps = MemoryState.empty(), []
    for segment, actions in zip(network.segments(), corpus.teacher(network).actions, strict=True):
        completion = json.dumps({"actions": _varied(actions, state, segment, dice)}, separators=(",", ":"))
        messages = template.render(observe(state, segment))
        steps.append(("".join(f"<user>{m['content']}" for m in messages) + "<writer>", completion))
        state, _ = step(state, segment, completion)
    return steps


def _varied(actions: Sequence[dict[str, Any]], state: MemoryState, segment: Segment, dice: random.Random) -> list[dict[str, Any]]:
    words = [word for message in segment.messages for word in message.content.split()]
    found = []
    for action in actions:
        if dice.random() > KEEP:
            continue
        action = dict(action)
        if "content" in action and dice.random() < REWORD:
            spoken = action["content"].split()
            spoken[dice.randrange(len(spoken))] = dice.choice(words)
            action["content"] = " ".join(spoken)
        if action["action"] == "UPDATE" and state.get(action["entry_id"]) is None:
            heads = state.heads()
            if not heads:
                continue
            action["entry_id"] = dice.choice(heads).entry_id
        found.append(action)
    if len(found) > 1 and dice.random() < SWAP:
        place = dice.randrange(len(found) - 1)
        found[place], found[place + 1] = found[place + 1], found[place]
    return found or [{"action": "NOOP"}]


@lru_cache(maxsize=4)
def tokenizer(kind: str, networks: int) -> Callable[[str], tuple[int, ...]]:
    """Text to ids, by a byte-level BPE of VOCABULARY[kind] trained on the texts of the row itself."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY[kind], special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    texts = [part for _, trajectories in written(kind, networks) for steps in trajectories for pair in steps for part in pair]
    bpe.train_from_iterator(texts, trainer)
    return lambda text: tuple(bpe.encode(text).ids)


def _advantages(dice: random.Random) -> list[float]:
    returns = [dice.gauss(0, 1) for _ in range(GROUP)]
    mean, spread = statistics.fmean(returns), statistics.pstdev(returns)
    return [(value - mean) / spread for value in returns]


def _sample(
    network: str, trajectory: int, position: int, prompt: tuple[int, ...], completion: tuple[int, ...], advantage: float
) -> Sample:
    return Sample(network, trajectory, position, prompt, completion, (-1.0,) * len(completion), advantage)
