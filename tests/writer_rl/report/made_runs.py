"""Runs without a model: completions made by damaging the teacher's actions, scored and stored as a real run does it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memory_env import MemoryState, Segment, parse_completion, step
from rewards import Scorer
from rewards.qa_results import QAGroup
from rollout.trajectory import Step, Trajectory
from writer_rl.config import GRPOConfig, load_config
from writer_rl.grpo.groups import assemble, final_states, score_trajectories
from writer_rl.grpo.plan import reward_settings
from writer_rl.grpo.questions import Questions
from writer_rl.grpo.records import question_records, trajectory_records
from writer_rl.run.directory import RunDirectory
from writer_rl.train.data import TaughtNetwork, load_sources, with_teachers

WORDS = [
    "really",
    "perhaps",
    "often",
    "the",
    "new",
    "old",
    "green",
    "tall",
    "said",
    "that",
    "now",
    "again",
    "always",
    "never",
    "quite",
]

Damage = Callable[[random.Random, TaughtNetwork, int, MemoryState], str]


def damaged(dice: random.Random, network: TaughtNetwork, position: int, state: MemoryState) -> str:
    """The teacher's output with records left out, words changed, ids lost; now and then no JSON at all."""
    if dice.random() < 0.03:
        return "Sure! Here are the actions:"
    actions = []
    for action in network.teacher.actions[position]:
        if dice.random() < 0.25:
            continue
        action = dict(action)
        if "content" in action and dice.random() < 0.5:
            words = action["content"].split()
            words[dice.randrange(len(words))] = dice.choice(WORDS)
            action["content"] = " ".join(words)
        actions.append(action)
    return json.dumps({"actions": actions or [{"action": "NOOP"}]}, ensure_ascii=False)


def make_run(
    folder: Path,
    sources: Sequence[str] = ("corpus:train",),
    rounds: int = 2,
    networks: int | Sequence[str] = 2,
    group_size: int = 8,
    writes: Damage = damaged,
    overrides: Sequence[str] = (),
    seed: int = 0,
) -> Path:
    """A run directory with config.yaml, metrics.jsonl, trajectories/ and questions/; the networks take turns, or are named."""
    config = load_config(
        "grpo",
        None,
        [
            *("--data.train", json.dumps(list(sources)), "--rollout.group_size", str(group_size)),
            *("--trainer.steps", str(rounds), "--tracking.wandb", "off", "--output_dir", str(folder), *overrides),
        ],
    )
    assert isinstance(config, GRPOConfig)
    data = with_teachers(load_sources(config.data.train), config.data)
    if not isinstance(networks, int):
        data = [each for each in data if each.network.network_id in networks]
    per_round = networks if isinstance(networks, int) else len(data)
    directory = RunDirectory.open(config)
    directory.write_config(config)
    questions = Questions(config.reward.qa, folder / "none.sqlite") if config.reward.qa.enabled else None
    weights, terms = reward_settings(config.reward)
    for number in range(1, rounds + 1):
        start = (number - 1) * per_round
        chosen = {each.network.network_id: each for each in (data[(start + place) % len(data)] for place in range(per_round))}
        dice = random.Random(seed * 1000 + number)
        written = {name: _group(dice, each, group_size, number, writes) for name, each in chosen.items()}
        scored = score_trajectories(written, chosen, Scorer(weights, config.reward.tokenizer, terms))
        gains: dict[str, Any] = {}
        if questions is not None:
            asked = [
                QAGroup(name, each.network.questions, [t.final_state for t in written[name]]) for name, each in chosen.items()
            ]
            gains = {gain.network_id: gain for gain in questions(asked)}
        groups = assemble(scored, {name: each.length for name, each in chosen.items()}, group_size, gains, weights)
        directory.write_trajectories(number, [r for g in groups for r in trajectory_records(g, config.seed, number - 1)])
        directory.write_questions(number, [r for g in groups for r in question_records(g)])
        directory.append_metrics({"round": number, "reward/return/mean": float(groups[0].returns.mean())})
    return folder


def _group(dice: random.Random, network: TaughtNetwork, size: int, version: int, writes: Damage) -> list[Trajectory]:
    group = []
    for index in range(size):
        state, steps = MemoryState.empty(), []
        for segment in network.network.segments():
            made = _step(dice, network, segment, state, writes)
            steps.append(made)
            state = made.post_state
        group.append(Trajectory(network.network.network_id, index, version, tuple(steps)))
    return group


def _step(dice: random.Random, network: TaughtNetwork, segment: Segment, state: MemoryState, writes: Damage) -> Step:
    text = writes(dice, network, segment.position, state)
    after, report = step(state, segment, text)
    ids = tuple(dice.randrange(1000) for _ in range(max(1, len(text) // 4)))
    prompt = (segment.position, len(state.derived()))
    actions = parse_completion(text).actions
    logprobs = tuple(-0.5 for _ in ids)
    return Step(segment.position, prompt, ids, logprobs, text, "stop", actions, report, state, after, 0)


__all__ = ["damaged", "final_states", "make_run"]
