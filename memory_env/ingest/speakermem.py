"""The published SpeakerMemR1 artefact (and any native files): networks, teacher trajectories, teacher final states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.sources import read_chat_json
from memory_env.loader import network_from_trajectory
from memory_env.network import Network


def recognises(document: Any) -> bool:
    """Whether a JSON document is a native network, a trajectory, or a teacher's final state."""
    return isinstance(document, dict) and ("sessions" in document or "transitions" in document or "final_state" in document)


def read(path: str | Path) -> tuple[list[Network], list[Path]]:
    """(networks, teacher files) of a file or of all JSON files below a folder.

    A network that stands both in a file of its own and inside a trajectory is taken from its own file. DataError.
    """
    path = Path(path)
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    networks: dict[str, Network] = {}
    inside: dict[str, Network] = {}
    teachers: list[Path] = []
    for file in files:
        document = read_chat_json(file)
        if not recognises(document):
            if path.is_dir():
                continue
            raise DataError(f"{file}: is no network (sessions), trajectory (transitions) or final state (final_state)")
        if "sessions" in document:
            network = Network.from_dict(_with_all_speakers(document), str(file), file.stem)
            if network.network_id in networks:
                raise DataError(f"{file}: network {network.network_id!r} is also in another file; keep one of them")
            networks[network.network_id] = network
        else:
            teachers.append(file)
            if "transitions" in document:
                network = network_from_trajectory(document, str(file))
                inside[network.network_id] = network
    return list({**inside, **networks}.values()), teachers


def _with_all_speakers(document: dict[str, Any]) -> dict[str, Any]:
    """`document` with the speakers that its roster lacks added to it, and a note of them in `meta.ingest`."""
    listed = document.get("speakers")
    if not isinstance(listed, list):
        return document
    sessions = [session for session in document["sessions"] or () if isinstance(session, dict)]
    turns = [turn for session in sessions for turn in session.get("turns") or () if isinstance(turn, dict)]
    heard = dict.fromkeys(turn["speaker"] for turn in turns if isinstance(turn.get("speaker"), str))
    missing = [name for name in heard if name not in listed]
    if not missing:
        return document
    meta = document.get("meta") or {}
    note = f"the roster lacks {', '.join(missing)}: added"
    return {**document, "speakers": [*listed, *missing], "meta": {**meta, "ingest": {"counts": {}, "notes": [note]}}}
