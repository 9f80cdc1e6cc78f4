"""What the Writer sees at a writing position: roster, segment, current heads of the derived layers, budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memory_env.actions import max_actions
from memory_env.conversation import Message, Segment
from memory_env.records import GROUP, Record
from memory_env.state import MemoryState
from memory_env.text import squared_norm, word_counts

LINE_OVERHEAD = 24
"""Characters of a rendered memory line beside its fields: id, separators and line break."""


@dataclass(frozen=True, slots=True)
class ObservationLimits:
    """How much memory an observation may hold: heads per owner, and characters of all rendered heads together."""

    heads_per_owner: int = 40
    max_chars: int = 60_000

    def __post_init__(self) -> None:
        if self.heads_per_owner < 0 or self.max_chars < 0:
            raise ValueError(f"observation limits must not be negative, got {self}")


@dataclass(frozen=True, slots=True)
class Observation:
    """The Writer's input before rendering.

    `roster`: members so far, this segment's included, sorted. `heads`: in creation order, whoever owns them, so that the
    memories of a group's trajectories part as late as they can. `omitted_heads` counts the heads that the limits left out.
    """

    roster: tuple[str, ...]
    messages: tuple[Message, ...]
    heads: tuple[Record, ...]
    budget: int
    omitted_heads: int = 0

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values; texts are exact (escaping belongs to rendering)."""
        return {
            "roster": list(self.roster),
            "messages": [
                {"turn": message.turn_id, "speaker": message.speaker, "ts": message.ts, "content": message.content}
                for message in self.messages
            ],
            "heads": [
                {
                    "entry_id": head.entry_id,
                    "owner": head.owner,
                    "source": head.source,
                    "layer": head.layer,
                    "utype": head.utype,
                    "content": head.content,
                }
                for head in self.heads
            ],
            "budget": self.budget,
            "omitted_heads": self.omitted_heads,
        }


_DEFAULT_LIMITS = ObservationLimits()


def observe(state: MemoryState, segment: Segment, limits: ObservationLimits = _DEFAULT_LIMITS) -> Observation:
    """The observation before `segment` is written into `state` (the state after the previous position).

    Over the limits, the heads most similar to the segment stay (ties: the most recent), and every owner with memory
    keeps at least one as long as the limits allow it.
    """
    roster = tuple(sorted({message.speaker for message in segment.messages}.union(state.roster)))
    owned = {owner: heads for owner in (*roster, GROUP) if (heads := state.heads(owner))}
    total = sum(len(heads) for heads in owned.values())
    fits = all(len(heads) <= limits.heads_per_owner for heads in owned.values()) and limits.max_chars >= sum(
        _line_length(head) for heads in owned.values() for head in heads
    )
    kept = owned if fits else _most_relevant(owned, segment, limits)
    shown = {head.entry_id for heads in kept.values() for head in heads}
    heads = tuple(head for head in state.heads() if head.entry_id in shown)
    return Observation(roster, segment.messages, heads, max_actions(len(segment.messages)), total - len(heads))


def _line_length(head: Record) -> int:
    return len(head.owner) + len(head.source) + len(head.layer) + len(head.content) + LINE_OVERHEAD


def _most_relevant(
    owned: dict[str, tuple[Record, ...]], segment: Segment, limits: ObservationLimits
) -> dict[str, tuple[Record, ...]]:
    """Per owner the heads to keep, in creation order."""
    ranked = {owner: _ranked(heads, segment)[: limits.heads_per_owner] for owner, heads in owned.items()}
    chosen: dict[str, set[int]] = {owner: set() for owner in owned}
    room = limits.max_chars

    # First one head for every owner; `reserve` keeps room for the shortest head of each owner still to come.
    shortest = {
        owner: min(_line_length(owned[owner][place]) for place in places) for owner, places in ranked.items() if places
    }
    reserve = sum(shortest.values())
    for owner, least in shortest.items():
        reserve -= least
        for place in ranked[owner]:
            length = _line_length(owned[owner][place])
            if length <= max(room - reserve, 0):
                chosen[owner].add(place)
                room -= length
                break

    # Then the next best of every owner in turn, as long as any fits.
    for rank in range(max((len(places) for places in ranked.values()), default=0)):
        for owner, places in ranked.items():
            if rank < len(places) and places[rank] not in chosen[owner]:
                length = _line_length(owned[owner][places[rank]])
                if length <= room:
                    chosen[owner].add(places[rank])
                    room -= length
    return {owner: tuple(owned[owner][place] for place in sorted(places)) for owner, places in chosen.items()}


def _ranked(heads: tuple[Record, ...], segment: Segment) -> list[int]:
    """Places of `heads`, the most similar to the segment first, ties by recency (lexical cosine, the segment fixed)."""
    words: dict[str, int] = {}
    for message in segment.messages:
        for word, count in word_counts(message.content).items():
            words[word] = words.get(word, 0) + count
    scored = []
    for place, head in enumerate(heads):
        counts = word_counts(head.content)
        dot = sum(count * words[word] for word, count in counts.items() if word in words)
        scored.append((-(dot * dot / squared_norm(counts)) if dot else 0.0, -place))
    return [-place for _, place in sorted(scored)]
