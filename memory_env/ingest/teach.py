"""Teacher trajectories from a language model: asked position by position, checked by the environment, repaired, kept.

The model reads what the Writer reads (the same prompt file). An output that the environment refuses goes back to it with
the reasons; what is still refused after the last try is left out and shown in the review.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memory_env.actions import max_actions
from memory_env.conversation import Segment
from memory_env.network import Network
from memory_env.observation import ObservationLimits, observe
from memory_env.prompts import PromptTemplate
from memory_env.state import MemoryState
from memory_env.step import Report, step

NOOP = {"action": "NOOP"}


class Client(Protocol):
    """`memory_env.query.answer.endpoint_client.EndpointClient`, or anything that answers like it."""

    def complete(
        self,
        stage: str,
        messages: Sequence[Mapping[str, str]],
        accept: Callable[[dict[str, Any]], Any],
        question_id: str = "",
    ) -> Any: ...


@dataclass(frozen=True)
class TaughtPosition:
    """One position: the actions that are kept, what the last try still had refused, and how many tries it took.

    Example:
        TaughtPosition(segment, [{"action": "NOOP"}], [({"action": "ADD", ...}, "owner is not in the roster")], 3, report, state)
    """

    segment: Segment
    actions: list[dict[str, Any]]
    refused: list[tuple[Any, str]]
    tries: int
    report: Report
    state: MemoryState


class Teacher:
    """Asks a model for the actions of every position of a network.

    retries: how often a refused output goes back to the model, per position.
    """

    def __init__(
        self,
        client: Client,
        template: PromptTemplate,
        retries: int = 2,
        limits: ObservationLimits | None = None,
    ):
        self._client, self._template = client, template
        self._retries, self._limits = retries, limits or ObservationLimits()

    def teach(
        self, network: Network, window: int | None = None, on_position: Callable[[TaughtPosition], None] | None = None
    ) -> list[TaughtPosition]:
        """The positions of `network`, in order. Raises what the client raises (JudgeError, EndpointUnusable)."""
        state, positions = MemoryState.empty(), []
        for segment in network.segments(window):
            taught = self._position(state, segment, network.network_id)
            state = taught.state
            positions.append(taught)
            if on_position is not None:
                on_position(taught)
        return positions

    def _position(self, state: MemoryState, segment: Segment, network_id: str) -> TaughtPosition:
        messages = self._template.render(observe(state, segment, self._limits))
        best: list[Any] = []
        fewest: int | None = None
        for attempt in range(self._retries + 1):  # noqa: B007 - its last value is a result
            place = f"{network_id}#{segment.position}"
            actions = self._client.complete("write", messages, _action_list, place)
            _, report = step(state, segment, actions)
            wrong = len(report.errors) + report.too_many_actions
            if fewest is None or wrong < fewest:
                best, fewest = actions, wrong
            if not wrong:
                break
            messages = [*messages, *_correction(actions, report, len(segment.messages))]
        kept, refused = longest_valid_run(state, segment, best)
        after, report = step(state, segment, kept)
        return TaughtPosition(segment, kept, refused, attempt + 1, report, after)


def longest_valid_run(
    state: MemoryState, segment: Segment, actions: Sequence[Any]
) -> tuple[list[dict[str, Any]], list[tuple[Any, str]]]:
    """(kept, refused with reasons): the longest run of `actions` in their order that the environment takes without error.

    Nothing kept is a NOOP, so that every position has an output.
    """
    kept: list[dict[str, Any]] = []
    refused: list[tuple[Any, str]] = []
    for action in actions:
        if len(kept) >= max_actions(len(segment.messages)):
            refused.append((action, "beyond the budget of the position"))
            continue
        _, report = step(state, segment, [*kept, action])
        if report.errors:
            # The error starts with the action's place among those tried here, which tells a reader nothing.
            refused.append((action, report.errors[-1].removeprefix(f"action {len(kept)}: ")))
        else:
            kept.append(action)
    return kept or [dict(NOOP)], refused


def _action_list(body: dict[str, Any]) -> list[Any]:
    actions = body.get("actions")
    if not isinstance(actions, list):
        raise ValueError("the response has no list `actions`")
    return actions


def _correction(actions: list[Any], report: Report, messages: int) -> list[dict[str, str]]:
    """What goes back to the model with its refused output."""
    reasons = [f"- {error}" for error in report.errors]
    if report.too_many_actions:
        reasons.append(f"- {len(actions)} actions are more than the {max_actions(messages)} allowed")
    told = "These actions were refused:\n" + "\n".join(reasons) + "\nSend the whole corrected list, as JSON."
    return [
        {"role": "assistant", "content": json.dumps({"actions": actions}, ensure_ascii=False)},
        {"role": "user", "content": told},
    ]


def review(network: Network, positions: Sequence[TaughtPosition]) -> str:
    """A Markdown page for people: every segment, the actions on it, and what was refused."""
    lines = [
        f"# {network.network_id}",
        "",
        f"{len(positions)} positions, {sum(len(p.refused) for p in positions)} refused actions",
        "",
    ]
    for taught in positions:
        segment = taught.segment
        lines += [f"## Position {segment.position}: {segment.session_id}, {segment.ts}", ""]
        lines += [f"> **{_cell(m.speaker)}** {_cell(m.ts)}: {_cell(m.content)}" + "  " for m in segment.messages]
        lines += ["", "| action | owner | source | layer | utype | content |", "| --- | --- | --- | --- | --- | --- |"]
        for action in taught.actions:
            kind = action.get("action", "")
            shown = f"{kind} {action['entry_id']}" if kind == "UPDATE" else kind
            cells = [shown, *(action.get(key, "") for key in ("owner", "source", "layer", "utype", "content"))]
            lines.append("| " + " | ".join(_cell(str(cell)) for cell in cells) + " |")
        for action, reason in taught.refused:
            lines += ["", f"- **refused** ({_cell(reason)}): `{_cell(json.dumps(action, ensure_ascii=False))}`"]
        if taught.tries > 1:
            lines += ["", f"{taught.tries} tries."]
        lines.append("")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Text that can't break the page: one line, and no markup of its own."""
    flat = " ".join(text.split())
    for character in "\\`|*_<>[]#":
        flat = flat.replace(character, "\\" + character)
    return flat
