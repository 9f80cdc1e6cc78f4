"""A stand-in for SocialMemBench: the embedded corpus in the published layout, under the ids of the paper's split."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memory_env import Network, corpus
from memory_env.ingest import socialmem

CARD = """---
configs:
- config_name: networks
  data_files: networks.jsonl
- config_name: personas
  data_files: personas.jsonl
- config_name: conversations
  data_files: conversations.jsonl
- config_name: qa
  data_files: qa.jsonl
---
A stand-in for SocialMemBench, made from writer-rl's embedded corpus: same tables, same ids, other conversations.
"""


def write_dataset(folder: Path, messages: int | None = None) -> None:
    """The four tables as JSONL, with the card by which `datasets` finds them.

    messages: at most so many of each session; None: all. Ids are those of the paper's split, so that it holds: 10 networks with
    77 questions for training and 10 with 305 held out.
    """
    folder.mkdir(parents=True)
    tables: dict[str, list[Mapping[str, Any]]] = {name: [] for name in ("networks", "personas", "conversations", "qa")}
    for network_id, network in _networks():
        tables["networks"].append({"network_id": network_id, "network_name": network.scenario, "group_type": "stand-in"})
        tables["personas"] += [{"network_id": network_id, "display_name": name} for name in network.speakers]
        tables["conversations"] += _turns(network_id, network, messages)
        tables["qa"] += [_question(network_id, number, each) for number, each in enumerate(network.to_dict()["qa_pairs"])]
    for name, rows in tables.items():
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "README.md").write_text(CARD, encoding="utf-8")


def _networks() -> Iterator[tuple[str, Network]]:
    trained = [network for network in corpus.train_networks() if "_real_" in network.network_id]
    yield from zip(socialmem.TRAIN, trained, strict=True)
    yield from zip(socialmem.HELDOUT, corpus.heldout_networks(), strict=True)


def _turns(network_id: str, network: Network, messages: int | None) -> Iterator[Mapping[str, Any]]:
    for session in network.to_dict()["sessions"]:
        turns: Sequence[Mapping[str, Any]] = session["turns"][:messages]
        for turn in turns:
            yield {
                "network_id": network_id,
                "session_id": session["session_id"],
                "session_topic": session["topic"],
                "timestamp": turn["ts"],
                "turn_id": turn["turn"],
                "speaker_display_name": turn["speaker"],
                "message": turn["content"],
                "reply_to_turn_id": turn["reply_to"] or None,
            }


def _question(network_id: str, number: int, question: Mapping[str, Any]) -> Mapping[str, Any]:
    options = list(question["options"].values()) if question["options"] else []
    return {
        "network_id": network_id,
        "qa_id": f"{network_id}_q{number:02d}",
        "query_type": question["category"],
        "question": question["question"],
        "answer": question["answer"],
        "options_json": json.dumps(options) if options else None,
        "correct_option": question["correct_option"] or None,
    }
