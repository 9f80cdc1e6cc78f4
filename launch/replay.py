"""Replay raw Writer outputs through the memory environment: one JSON line per writing position.

    python launch/replay.py --network N.json --completions C.jsonl
    python launch/replay.py --network N.json --completions C.jsonl --reference TEACHER.json > T.jsonl

N.json is a network in the native format, or a teacher trajectory that carries its messages. Line t of C.jsonl is the
output at position t: {"completion": "...", "hit_length_limit": false} (the second key may be left out); there must be
exactly one line per position. Nothing a completion holds can fail the run: what is wrong with it is in `report`.

Each output line has position, session_id, n_messages, actions, report, pre_state and post_state (the derived track,
superseded records included, in creation order); --prompts adds observation and prompt, --reference adds reference.
launch/score.py reads these lines.
"""

from __future__ import annotations

import json
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from launch.cli import UsageError, parser, run
from writer_rl.memory.cli_reading import add_provenance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memory_env.network import Network
    from memory_env.replay import Completion


def main(argv: list[str]) -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--network", required=True, metavar="FILE", help="the conversation")
    arguments.add_argument(
        "--completions", required=True, metavar="FILE", help="JSONL, one Writer output per position; or a teacher file"
    )
    arguments.add_argument(
        "--window", type=int, metavar="N", help="positions are windows of N messages (default: one position per session)"
    )
    arguments.add_argument("--strict", action="store_true", help="one invalid action rejects the whole output")
    add_provenance(arguments)
    arguments.add_argument(
        "--reference", metavar="FILE", help="a teacher file; adds its state after every position, its entry ids are understood"
    )
    arguments.add_argument("--prompts", action="store_true", help="add what the Writer sees at every position")
    arguments.add_argument("--template", metavar="FILE", help="the prompt file of --prompts (default: the shipped writer.jinja)")
    chosen = arguments.parse_args(argv)
    if chosen.window is not None and chosen.window < 1:
        raise UsageError(f"--window {chosen.window}: must be at least 1 message")
    print_lines(chosen)


def print_lines(chosen: Namespace) -> None:
    """The line of every position."""
    from memory_env.default_prompts import PROMPTS
    from memory_env.loader import load_network
    from memory_env.observation import observe
    from memory_env.prompts import PromptTemplate
    from memory_env.provenance import named_provenance
    from memory_env.replay import replay
    from memory_env.trajectory import load_trajectory

    network = load_network(chosen.network)
    segments = network.segments(chosen.window)
    completions = read_outputs(chosen.completions, network, chosen.window)
    if len(completions) != len(segments):
        raise UsageError(
            f"{chosen.completions}: has {len(completions)} lines, but {chosen.network} has {len(segments)} writing "
            "positions; give one completion per position"
        )
    template = PromptTemplate.load(chosen.template or PROMPTS / "writer.jinja") if chosen.prompts else None
    teacher = load_trajectory(chosen.reference, network, chosen.window) if chosen.reference else None
    if teacher is not None:
        completions = [in_own_ids(completion, teacher.ids) for completion in completions]

    provenance = named_provenance(chosen.provenance)
    for written in replay(network, completions, chosen.window, strict=chosen.strict, provenance=provenance):
        segment = written.segment
        line: dict[str, Any] = {
            "position": segment.position,
            "session_id": segment.session_id,
            "n_messages": len(segment.messages),
        }
        if template is not None:
            observation = observe(written.pre_state, segment)
            line |= {"observation": observation.to_dict(), "prompt": template.render(observation)}
        line |= {
            "actions": written.actions,
            "report": written.report.to_dict(),
            "pre_state": written.pre_state.to_dict(),
            "post_state": written.post_state.to_dict(),
        }
        if teacher is not None:
            line["reference"] = teacher.states[segment.position].to_dict()
        print(json.dumps(line))


def read_outputs(path: str, network: Network, window: int | None) -> list[Completion]:
    """The Writer's outputs of a JSONL file, or a teacher's from a teacher file, whose entry ids become this environment's."""
    from memory_env.replay import Completion
    from memory_env.trajectory import is_teacher_file, load_trajectory

    if not is_teacher_file(path):
        return read_completions(path)
    teacher = load_trajectory(path, network, window)
    return [Completion(json.dumps({"actions": actions})) for actions in teacher.actions]


def in_own_ids(completion: Completion, ids: Mapping[str, str]) -> Completion:
    """A Writer's output with a teacher's entry ids as this environment's; any other text as it is."""
    from memory_env.actions import parse_completion
    from memory_env.replay import Completion

    output = parse_completion(completion.text)
    cited = {action.get("entry_id") for action in output.actions if isinstance(action, dict)} if output.valid else set()
    if cited.isdisjoint(ids):
        return completion
    actions = [
        {**action, "entry_id": ids[action["entry_id"]]} if isinstance(action, dict) and action.get("entry_id") in ids else action
        for action in output.actions
    ]
    return Completion(json.dumps({"actions": actions}), completion.hit_length_limit)


def read_completions(path: str) -> list[Completion]:
    """The completion of every line; blank lines at the end do not count. Raises DataError."""
    from memory_env.datafile import Fields, parse_json, read_text
    from memory_env.replay import Completion

    text = read_text(path).rstrip(" \r\n\t")
    completions = []
    for number, line in enumerate(text.split("\n") if text else (), 1):
        where = f"{path}, line {number}"
        fields = Fields.of(parse_json(line, where), where, "the line")
        completions.append(Completion(fields.get("completion", str), fields.get("hit_length_limit", bool, False)))
    return completions


if __name__ == "__main__":
    run(main)
