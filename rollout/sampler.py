"""Lockstep rollouts: all trajectories of all networks of a round write one position at a time, in one engine call.

T is fixed by the network. A malformed output is a step without effect that is scored like any other, never an early
stop: normalising returns per position is biased as soon as the policy decides when a trajectory ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_env import MemoryState, Network, Segment, parse_completion, step
from rollout.engine import Engine, Generation, GenerationRequest, SamplingParams, keeping_prompts
from rollout.seeds import request_seed
from rollout.trajectory import Step, Trajectory
from rollout.writer_prompt import EncodedPrompt, WriterPrompt


@dataclass(frozen=True, slots=True)
class WrittenPosition:
    """One finished position of a round: ``position`` + 1 of ``positions``, with what was written there.

    Example: ``WrittenPosition(position=0, positions=5, completions=32, tokens=1180, truncated=1)``
    """

    position: int
    positions: int
    completions: int
    tokens: int
    truncated: int


@dataclass(slots=True)
class _Writing:
    """A trajectory while it is written."""

    network_id: str
    index: int
    segments: tuple[Segment, ...]
    state: MemoryState = field(default_factory=MemoryState.empty)
    steps: list[Step] = field(default_factory=list)


def sample_groups(
    networks: Sequence[Network],
    engine: Engine,
    prompt: WriterPrompt,
    group_size: int,
    sampling: SamplingParams,
    run_seed: int,
    *,
    visit: int = 0,
    window: int | None = None,
    strict: bool = False,
    provenance: Any = None,
    members: Mapping[str, Sequence[int]] | None = None,
    shared_past: bool = False,
    on_position: Callable[[WrittenPosition], None] | None = None,
) -> dict[str, list[Trajectory]]:
    """Write the memory of each network ``group_size`` times from an empty state.

    Args:
        prompt: turns a state and a segment into token ids.
        run_seed, visit: see `rollout.seeds.request_seed`; the policy version comes from the engine.
        window: messages per segment, or None for one segment per session.
        strict, provenance: passed to `memory_env.step`.
        members: of each network, which of its ``group_size`` trajectories to write here (other ranks write the others); a
            trajectory is the same wherever it is written. None: all.
        shared_past: every trajectory writes every position from the memory that the network's first one here has there, a fork of
            it; what the others wrote before is no part of their past.
        on_position: called after each position.

    Returns:
        ``group_size`` trajectories per network id (or its ``members``); every trajectory of a network has the network's T
        steps.

    Raises ValueError for two networks with one id or ``group_size`` < 1, and what the prompt and the engine raise.
    """
    if group_size < 1:
        raise ValueError(f"group_size is {group_size}; it must be at least 1")
    names = [network.network_id for network in networks]
    if len(set(names)) < len(names):
        raise ValueError(f"network {max(names, key=names.count)!r} is in the round twice; sample it in two rounds")
    version = engine.policy_version
    writings = [
        _Writing(network.network_id, index, segments)
        for network in networks
        for segments in (network.segments(window),)
        for index in (range(group_size) if members is None else members[network.network_id])
    ]
    positions = max((len(writing.segments) for writing in writings), default=0)
    # Positions of a conversation begin alike, and the weights stay as they are until the last one is written.
    with keeping_prompts(engine):
        for position in range(positions):
            active = [writing for writing in writings if position < len(writing.segments)]
            if shared_past:
                _fork(active)
            prompts = _prompts(active, position, prompt)
            requests = [
                GenerationRequest(
                    encoded.token_ids,
                    request_seed(run_seed, writing.network_id, writing.index, position, version, visit),
                    sampling,
                )
                for writing, encoded in zip(active, prompts, strict=True)
            ]
            generations = engine.generate(requests)
            for writing, encoded, generation in zip(active, prompts, generations, strict=True):
                made = _step(writing.state, writing.segments[position], encoded, generation, strict, provenance)
                writing.steps.append(made)
                writing.state = made.post_state
            if on_position is not None:
                on_position(_written(position, positions, generations))
    groups: dict[str, list[Trajectory]] = {name: [] for name in names}
    for writing in writings:
        assert len(writing.steps) == len(writing.segments), "every trajectory has the network's T steps"
        groups[writing.network_id].append(Trajectory(writing.network_id, writing.index, version, tuple(writing.steps)))
    return groups


def write_memories(
    networks: Sequence[Network], engine: Engine, prompt: WriterPrompt, max_new_tokens: int, **options: Any
) -> dict[str, Trajectory]:
    """Write each network's memory once, greedily: the same memory whenever the weights are the same.

    ``options`` are those of `sample_groups`.
    """
    greedy = SamplingParams(greedy=True, max_new_tokens=max_new_tokens)
    groups = sample_groups(networks, engine, prompt, 1, greedy, 0, **options)
    return {network_id: group[0] for network_id, group in groups.items()}


def _fork(active: Sequence[_Writing]) -> None:
    """Give every trajectory of a network the memory of its first: O(1) each, a state is never changed."""
    past: dict[str, MemoryState] = {}
    for writing in active:
        writing.state = past.setdefault(writing.network_id, writing.state)


def _prompts(active: Sequence[_Writing], position: int, prompt: WriterPrompt) -> list[EncodedPrompt]:
    """One prompt per trajectory; trajectories that share a state share the work."""
    seen: dict[tuple[str, int], EncodedPrompt] = {}
    prompts = []
    for writing in active:
        key = (writing.network_id, id(writing.state))
        if key not in seen:
            seen[key] = prompt.encode(writing.state, writing.segments[position], writing.network_id)
        prompts.append(seen[key])
    return prompts


def _step(
    state: MemoryState, segment: Segment, encoded: EncodedPrompt, generation: Generation, strict: bool, provenance: Any
) -> Step:
    parsed = parse_completion(generation.text)
    after, report = step(
        state,
        segment,
        parsed,
        hit_length_limit=generation.finish_reason == "length",
        strict=strict,
        provenance=provenance,
    )
    return Step(
        position=segment.position,
        prompt_ids=encoded.token_ids,
        completion_ids=generation.token_ids,
        logprobs=generation.logprobs,
        text=generation.text,
        finish_reason=generation.finish_reason,
        actions=parsed.actions,
        report=report,
        pre_state=state,
        post_state=after,
        omitted_heads=encoded.omitted_heads,
    )


def _written(position: int, positions: int, generations: Sequence[Generation]) -> WrittenPosition:
    return WrittenPosition(
        position=position,
        positions=positions,
        completions=len(generations),
        tokens=sum(len(generation.token_ids) for generation in generations),
        truncated=sum(generation.finish_reason == "length" for generation in generations),
    )
