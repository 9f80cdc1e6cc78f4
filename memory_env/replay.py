"""A conversation written through `step`, position by position: the one loop behind every Writer and every replay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from memory_env.actions import ParsedOutput, parse_completion
from memory_env.conversation import Segment
from memory_env.datafile import DataError
from memory_env.network import Network
from memory_env.provenance import Provenance
from memory_env.state import MemoryState
from memory_env.step import Report, step


@dataclass(frozen=True, slots=True)
class Completion:
    """What a Writer gave at one position, and the tokens of prompt and output where it counted them.

    Example: Completion('{"actions":[{"action":"NOOP"}]}').
    """

    text: str
    hit_length_limit: bool = False
    prompt_tokens: int | None = field(default=None, compare=False)
    tokens: int | None = field(default=None, compare=False)


Output = Completion | str | Sequence[object]
"""A Writer's output: a completion, its text alone, or an action list already parsed."""


OutputT = TypeVar("OutputT", bound=Output)
OutputT_co = TypeVar("OutputT_co", bound=Output, covariant=True)


class Writes(Protocol[OutputT_co]):
    """Gives the output for one segment, seeing the memory before it."""

    def __call__(self, state: MemoryState, segment: Segment) -> OutputT_co: ...


@dataclass(frozen=True, slots=True)
class WrittenStep(Generic[OutputT]):
    """One position: the output, its actions verbatim ([] where it is no action list), and the states around it.

    Example: replay(network, outputs)[-1].post_state is the memory of the whole conversation.
    """

    segment: Segment
    output: OutputT
    actions: Sequence[object]
    report: Report
    pre_state: MemoryState
    post_state: MemoryState


def write(
    segments: Sequence[Segment],
    writer: Writes[OutputT],
    *,
    strict: bool = False,
    provenance: Provenance | None = None,
    start: MemoryState | None = None,
) -> Iterator[WrittenStep[OutputT]]:
    """The steps of `segments` from `start` (default: empty), each output asked of `writer` when its turn comes."""
    state = start or MemoryState.empty()
    for segment in segments:
        written = _written(state, segment, writer(state, segment), strict, provenance)
        yield written
        state = written.post_state


def replay(
    network: Network,
    outputs: Sequence[OutputT],
    window: int | None = None,
    *,
    strict: bool = False,
    provenance: Provenance | None = None,
) -> tuple[WrittenStep[OutputT], ...]:
    """The steps that stored outputs make again, one output per position; the same outputs give the same memory.

    Raises DataError for another number of positions.
    """
    segments = network.segments(window)
    require_positions(network, len(segments), len(outputs))
    given = iter(outputs)
    return tuple(write(segments, lambda state, segment: next(given), strict=strict, provenance=provenance))


def require_positions(network: Network, expected: int, found: int) -> None:
    """Raises DataError unless a network with `expected` positions got `found` = as many."""
    if expected != found:
        raise DataError(
            f"network {network.network_id!r} has {expected} writing positions, but {found} are given; "
            "they must be for the same segmentation"
        )


def _written(
    state: MemoryState, segment: Segment, output: OutputT, strict: bool, provenance: Provenance | None
) -> WrittenStep[OutputT]:
    completion = Completion(output) if isinstance(output, str) else output
    if isinstance(completion, Completion):
        parsed, cut_short = parse_completion(completion.text), completion.hit_length_limit
    else:
        parsed, cut_short = ParsedOutput(True, list(completion)), False
    after, report = step(state, segment, parsed, hit_length_limit=cut_short, strict=strict, provenance=provenance)
    return WrittenStep(segment, output, parsed.actions, report, state, after)
