"""What was read, as a table like the paper's Table 13, and what its reader should be warned of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from memory_env.actions import action_kind
from memory_env.ingest.language import guess_language
from memory_env.ingest.times import instant
from memory_env.network import Network
from memory_env.trajectory import TeacherTrajectory

UNSEEN_SHARE = 0.02
"""Warn when the reward's tokenizer can't see more than this share of a text's letters and digits."""


@dataclass(frozen=True)
class InventoryLine:
    """One network of the inventory.

    Example:
        InventoryLine("manual_update_alpha", "train", 3, 6, 30, 4, {"ADD": 4, "UPDATE": 6})
    """

    network_id: str
    part: str
    speakers: int
    segments: int
    messages: int
    questions: int
    actions: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Inventory:
    """Lines and warnings; `to_dict()` is inventory.json, `to_text()` what is printed."""

    lines: tuple[InventoryLine, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"networks": [asdict(line) for line in self.lines], "warnings": list(self.warnings)}

    def to_text(self) -> str:
        """A table with one row per network and a total per part."""
        header = ("network", "part", "speakers", "segments", "messages", "QA", "ADD", "UPDATE", "NOOP")
        rows = [_cells(line) for line in self.lines]
        for part in dict.fromkeys(line.part for line in self.lines):
            rows.append(_total(part, [line for line in self.lines if line.part == part]))
        width = max(len(row[0]) for row in (header, *rows))
        parts = max(len(row[1]) for row in (header, *rows))
        lines = [f"{row[0]:<{width}}  {row[1]:<{parts}}" + "".join(f"{cell:>10}" for cell in row[2:]) for row in (header, *rows)]
        counts: Counter[str] = Counter()
        for line in self.lines:
            counts.update(line.counts)
        if counts:
            lines.append("handled: " + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
        return "\n".join(lines + [f"warning: {warning}" for warning in self.warnings])


def take_inventory(
    parts: dict[str, Sequence[Network]],
    trajectories: Iterable[TeacherTrajectory] = (),
    unseen_share: Callable[[Iterable[str]], float] | None = None,
    window: int | None = None,
) -> Inventory:
    """The inventory of `parts` ("train": networks, "heldout": networks, ...).

    `unseen_share` is the share of a text's letters that the reward's tokenizer can't see
    (`rewards.tokens.unseen_text_share`; memory_env does not import rewards).
    """
    teachers = {trajectory.network_id: trajectory for trajectory in trajectories}
    lines, warnings = [], []
    for part, networks in parts.items():
        for network in networks:
            teacher = teachers.get(network.network_id)
            lines.append(_line(part, network, teacher, window))
            warnings += _network_warnings(network, teacher, unseen_share)
    return Inventory(tuple(lines), tuple(warnings + overlaps(parts)))


def overlaps(parts: dict[str, Sequence[Network]]) -> list[str]:
    """Networks that stand in two parts, by id or by what they say."""
    ids: dict[str, str] = {}
    contents: dict[str, tuple[str, str]] = {}
    found = []
    for part, networks in parts.items():
        for network in networks:
            if ids.setdefault(network.network_id, part) != part:
                found.append(f"{network.network_id} is in {ids[network.network_id]} and in {part}")
            digest = network.content_digest()
            other_part, other_id = contents.setdefault(digest, (part, network.network_id))
            if other_id != network.network_id:
                where = f"{other_id} ({other_part})"
                found.append(f"{network.network_id} ({part}) says word for word what {where} says")
    return found


def _line(part: str, network: Network, teacher: TeacherTrajectory | None, window: int | None) -> InventoryLine:
    actions = Counter(action_kind(action) for output in teacher.actions for action in output) if teacher else {}
    handled = network.meta.get("ingest", {}).get("counts", {})
    return InventoryLine(
        network.network_id,
        part,
        len(network.speakers),
        len(network.segments(window)),
        len(network.messages),
        len(network.questions),
        dict(actions),
        dict(handled),
    )


def _network_warnings(
    network: Network, teacher: TeacherTrajectory | None, unseen_share: Callable[[Iterable[str]], float] | None
) -> list[str]:
    name, found = (
        network.network_id,
        [f"{network.network_id}: {note}" for note in network.meta.get("ingest", {}).get("notes", ())],
    )
    heard = {message.speaker for message in network.messages}
    silent = [speaker for speaker in network.speakers if speaker not in heard]
    if silent:
        found.append(f"{name}: {', '.join(silent)} never speak{'s' * (len(silent) == 1)}")
    empty = [session.session_id for session in network.sessions if not session.turns]
    if empty:
        found.append(f"{name}: {len(empty)} empty session{'s' * (len(empty) > 1)}, the first is {empty[0]}")
    found += _disorder(network)
    texts = [message.content for message in network.messages]
    if unseen_share is not None and (share := unseen_share(texts)) > UNSEEN_SHARE:
        found.append(f"{name}: the reward's tokenizer can't see {share:.0%} of the letters; use reward.tokenizer: unicode")
    if teacher is not None:
        written = [record.content for record in teacher.states[-1].derived()] if teacher.states else []
        if unseen_share is not None and (share := unseen_share(written)) > UNSEEN_SHARE:
            found.append(
                f"{name}: the reward's tokenizer can't see {share:.0%} of the teacher's letters; use reward.tokenizer: unicode"
            )
        spoken, taught = guess_language(texts), guess_language(written)
        if spoken and taught and spoken != taught:
            found.append(f"{name}: the chat seems to be {spoken}, the teacher writes {taught}; text rewards will be low")
    return found


def _disorder(network: Network) -> list[str]:
    backwards, unread, first = 0, 0, ""
    began = None
    for session in network.sessions:
        # Sessions of several channels overlap, so only their beginnings have to be in order.
        before, began = began, next((at for turn in session.turns if (at := instant(turn.ts)) is not None), began)
        for message in session.turns:
            now = instant(message.ts)
            unread += now is None and bool(message.ts)
            if now is not None and before is not None and now < before:
                backwards += 1
                first = first or message.turn_id
            before = before if now is None else now
    found = []
    if backwards:
        found.append(f"{network.network_id}: {backwards} messages are earlier than the one before, the first is {first}")
    if unread:
        found.append(f"{network.network_id}: {unread} times are not ISO 8601")
    return found


def _cells(line: InventoryLine) -> tuple[str, ...]:
    actions = [line.actions.get(kind, 0) if line.actions else "-" for kind in ("ADD", "UPDATE", "NOOP")]
    numbers = (line.speakers, line.segments, line.messages, line.questions, *actions)
    return (line.network_id, line.part, *map(str, numbers))


def _total(part: str, lines: list[InventoryLine]) -> tuple[str, ...]:
    actions: Counter[str] = Counter()
    for line in lines:
        actions.update(line.actions)
    numbers = [sum(getattr(line, key) for line in lines) for key in ("segments", "messages", "questions")]
    kinds = [actions[kind] if actions else "-" for kind in ("ADD", "UPDATE", "NOOP")]
    return (f"= {len(lines)} network{'s' * (len(lines) != 1)}", part, "", *map(str, (*numbers, *kinds)))
