"""Networks from files: the native format, or the conversation inside a teacher trajectory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_env.datafile import DataError, Fields, parse_json, read_json, read_text
from memory_env.network import Network
from memory_env.trajectory import TRAJECTORY_SCHEMA


def load_network(path: str | Path) -> Network:
    """One network from a native file, or from a trajectory file that carries its messages. Raises DataError."""
    return parse_network(read_json(path), str(path), default_id=Path(path).stem)


def load_networks(path: str | Path) -> list[Network]:
    """Networks of a native file, a `.jsonl` file (one network a line), or a folder of such files, by file name.

    A folder that launch/prepare.py wrote stands for its networks (`part_of_prepared`). Raises DataError, also for two
    networks with one id.
    """
    path = part_of_prepared(path)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".json", ".jsonl"))
        if not files:
            raise DataError(f"{path}: holds no .json or .jsonl file; name a folder of networks")
    else:
        files = [path]
    networks: list[Network] = []
    origins: dict[str, str] = {}
    for file in files:
        for where, network in _load_file(file):
            if network.network_id in origins:
                raise DataError(
                    f"{where}: network id {network.network_id!r} is already used by {origins[network.network_id]}; "
                    "ids must be unique"
                )
            origins[network.network_id] = where
            networks.append(network)
    return networks


def part_of_prepared(path: str | Path, part: str = "train") -> Path:
    """Where a folder that launch/prepare.py wrote keeps its networks; any other path as it is.

    `read` writes inventory.json beside `networks`, or beside the parts `train` and `heldout`, of which `part` is meant;
    `teach` writes teach.json beside `trajectories`, which carry their messages.
    """
    path = Path(path)
    if (path / "inventory.json").is_file():
        return next((path / name for name in ("networks", part) if (path / name).is_dir()), path)
    if (path / "teach.json").is_file() and (path / "trajectories").is_dir():
        return path / "trajectories"
    return path


def _load_file(file: Path) -> list[tuple[str, Network]]:
    if file.suffix != ".jsonl":
        return [(str(file), load_network(file))]
    loaded = []
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            where = f"{file}, line {number}"
            loaded.append((where, parse_network(parse_json(line, where), where)))
    if not loaded:
        raise DataError(f"{file}: is empty; write one network a line")
    return loaded


def parse_network(document: object, where: str, default_id: str = "") -> Network:
    """The network of a native document, or of a trajectory that carries its messages. `where` names it. Raises DataError."""
    if isinstance(document, dict) and "transitions" in document:
        return network_from_trajectory(document, where)
    return Network.from_dict(document, where, default_id)


def network_from_trajectory(document: object, where: str) -> Network:
    """The network inside a `speakermem-v4-trajectories/1` document: its messages, sessions and questions."""
    fields = Fields.of(document, where)
    sessions: dict[str, dict[str, Any]] = {}
    for transition in fields.objects("transitions"):
        session_id = transition.text("session_id")
        session = sessions.setdefault(
            session_id,
            {
                "session_id": session_id,
                "session_index": len(sessions) + 1,
                "topic": "",
                "ts": transition.text("ts", ""),
                "turns": [],
            },
        )
        for message in transition.objects("messages"):
            number = len(session["turns"])
            session["turns"].append(
                {
                    "turn": f"{session_id}_t{number:03d}",
                    "speaker": message.text("speaker"),
                    "content": message.get("content", str),
                    "ts": message.text("ts", ""),
                }
            )
    speakers = sorted({turn["speaker"] for session in sessions.values() for turn in session["turns"]})
    return Network.from_dict(
        {
            "schema": fields.text("schema", TRAJECTORY_SCHEMA),
            "scenario": "",
            "speakers": speakers,
            "sessions": list(sessions.values()),
            "qa_pairs": fields.get("qa_pairs", list, []),
            "meta": {"network_id": fields.text("network_id"), **_source_meta(fields)},
        },
        where,
    )


def _source_meta(fields: Fields) -> dict[str, Any]:
    source = fields.get("source", dict, {})
    meta = source.get("meta")
    return {key: value for key, value in meta.items() if key != "network_id"} if isinstance(meta, dict) else {}
