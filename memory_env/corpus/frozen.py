"""The committed files of the corpus: written by `build`, compared byte for byte by `verify`, read by
`train_networks`, `heldout_networks`, `unseen_networks` and `teacher`.

Networks are in the native format, trajectories in the published `speakermem-v4-trajectories/1` form, and `manifest.json`
holds the SHA-256 of each. The SFT set is too large to commit: the manifest has its seeds, its size and the SHA-256 of its bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from memory_env.corpus.conversations import Conversation, from_recipe, generate_sft
from memory_env.corpus.reference import TeacherRun
from memory_env.corpus.sets import HELDOUT, TRAIN, UNSEEN, Recipe
from memory_env.datafile import DataError

DATA = Path(__file__).parent / "data"
SETS: dict[str, tuple[Recipe, ...]] = {"train": TRAIN, "heldout": HELDOUT, "unseen": UNSEEN}
SFT_COUNTS = (3_000, 2_000, 3_000)  # conversations of curriculum levels 0, 1, 2
Progress = Callable[[str], None]


def network_bytes(conversation: Conversation) -> bytes:
    """The network's file: one line per turn and per question."""
    fields = conversation.network.to_dict()
    sessions = [{**s, "turns": [_Line(t) for t in s["turns"]]} for s in fields["sessions"]]
    return _lines({**fields, "sessions": sessions, "qa_pairs": [_Line(q) for q in fields["qa_pairs"]]})


def trajectory_bytes(conversation: Conversation, taught: TeacherRun | None = None) -> bytes:
    """The complete teacher's file, or that of another teacher's run (`conversation.biased(seed)`), in the published form."""
    network, taught = conversation.network, taught or conversation.taught
    transitions = []
    counts: dict[str, int] = {}
    for segment, actions, report, state in zip(network.segments(), taught.actions, taught.reports, taught.states, strict=True):
        messages = [
            {"speaker": m.speaker, "content": m.content, "session": m.session_id, "ts": m.ts, "msg_id": str(i)}
            for i, m in enumerate(segment.messages)
        ]
        after = state.to_dict()
        transitions.append(
            {
                "turn": segment.position,
                "session_id": segment.session_id,
                "ts": segment.ts,
                "messages": [_Line(m) for m in messages],
                "actions": [_Line(a) for a in actions],
                "report": _Line(report.to_dict()),
                "post_state": _state(after),
                "segment_index": segment.position,
            }
        )
        for action in actions:
            counts[action["action"]] = counts.get(action["action"], 0) + 1
    final = taught.states[-1].to_dict()
    return _lines(
        {
            "schema": "speakermem-v4-trajectories/1",
            "teacher": {"model": "by construction"},
            "network_id": network.network_id,
            "transitions": transitions,
            "final_state": _state(final),
            "stats": {
                "transitions": len(transitions),
                "actions": dict(sorted(counts.items())),
                "derived_entries": len(final["entries"]),
                "update_edges": len(final["update_edges"]),
            },
        }
    )


def files() -> Iterator[tuple[str, bytes]]:
    """Every network and trajectory file by its name under the data folder."""
    for name, recipes in SETS.items():
        for recipe in recipes:
            conversation = from_recipe(recipe)
            yield f"{name}/{recipe.name}.json", network_bytes(conversation)
            yield f"trajectories/{recipe.name}.json", trajectory_bytes(conversation)


def sft_digest(level: int, count: int, progress: Progress = lambda line: None) -> str:
    """SHA-256 over the SFT conversations 0 to count - 1 of a level: messages, questions, and the teacher's actions."""
    digest = hashlib.sha256()
    for seed in range(count):
        conversation = generate_sft(seed, level)
        digest.update(json.dumps(conversation.network.to_dict(), ensure_ascii=False, sort_keys=True).encode())
        digest.update(json.dumps(conversation.taught.actions).encode())
        if (seed + 1) % 1_000 == 0:
            progress(f"SFT level {level}: {seed + 1} of {count}")
    return digest.hexdigest()


def manifest(contents: dict[str, bytes], progress: Progress = lambda line: None) -> dict[str, Any]:
    """What `manifest.json` says."""
    return {
        "files": {name: hashlib.sha256(contents[name]).hexdigest() for name in sorted(contents)},
        "sft": [
            {"level": level, "first_seed": 0, "count": count, "sha256": sft_digest(level, count, progress)}
            for level, count in enumerate(SFT_COUNTS)
        ],
    }


def build(folder: Path = DATA, progress: Progress = lambda line: None) -> int:
    """Write all files; returns how many."""
    contents = dict(files())
    contents["manifest.json"] = _lines(manifest(contents, progress))
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        progress(f"wrote {name}")
    return len(contents)


def verify(folder: Path = DATA, sft: bool = True, progress: Progress = lambda line: None) -> int:
    """Generate everything again and compare; returns the number of equal files. DataError names the first that differs.

    Without `sft` the SFT set's hashes are left unchecked (they take most of the time).
    """
    contents = dict(files())
    for name, content in contents.items():
        path = folder / name
        if not path.is_file():
            raise DataError(f"{path}: missing; `python launch/corpus.py build` writes it")
        if path.read_bytes() != content:
            raise DataError(
                f"{path}: differs from what the generator makes; restore it, or run `launch/corpus.py build` if that is meant"
            )
    known = folder / "manifest.json"
    if not known.is_file():
        raise DataError(f"{known}: missing; `python launch/corpus.py build` writes it")
    recorded = json.loads(known.read_text(encoding="utf-8"))
    for name, content in contents.items():
        if recorded["files"].get(name) != hashlib.sha256(content).hexdigest():
            raise DataError(
                f"{known}: the hash of {name} does not match; run `python launch/corpus.py build` if the change is meant"
            )
    for path in sorted(folder.rglob("*.json")):
        name = path.relative_to(folder).as_posix()
        if name not in contents and name != "manifest.json":
            raise DataError(f"{path}: not made by the generator; remove it")
    for entry in recorded["sft"] if sft else ():
        if sft_digest(entry["level"], entry["count"], progress) != entry["sha256"]:
            raise DataError(f"{known}: the SFT set of level {entry['level']} differs from what the generator makes")
        progress(f"SFT level {entry['level']}: {entry['count']} conversations equal")
    return len(contents) + 1


def _state(state: dict[str, Any]) -> dict[str, Any]:
    # as in the published files, the records' provenance is left out: replaying the actions gives it
    entries = [{name: value for name, value in entry.items() if name != "from_ids"} for entry in state["entries"]]
    return {"entries": _each(entries), "update_edges": _each(state["update_edges"]), "roster": _Line(state["roster"])}


def _each(values: list[Any]) -> list[_Line]:
    return [_Line(value) for value in values]


class _Line:
    """A value that stays on one line of the file."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _lines(value: Any) -> bytes:
    return (_text(value, 0) + "\n").encode("utf-8")


def _text(value: Any, depth: int) -> str:
    if isinstance(value, _Line):
        return json.dumps(value.value, ensure_ascii=False)
    pad, end = " " * (depth + 1), " " * depth
    if isinstance(value, dict) and value:
        rows = [f"{pad}{json.dumps(key)}: {_text(part, depth + 1)}" for key, part in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{end}}}"
    if isinstance(value, list | tuple) and value:
        return "[\n" + ",\n".join(pad + _text(part, depth + 1) for part in value) + f"\n{end}]"
    return json.dumps(value, ensure_ascii=False)
