"""Records of the dual-track memory (paper Tables 5 and 6) and the edges between versions of one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GROUP = "GROUP"
VERBATIM_LAYER = "per_speaker_episodic"
PERSON_LAYERS = ("per_speaker_core", "per_speaker_profile")
GROUP_LAYERS = ("group_interaction", "group_insight")
DERIVED_LAYERS = PERSON_LAYERS + GROUP_LAYERS
VERBATIM_UTYPE = "utterance"
DERIVED_UTYPES = ("fact", "stance", "observation", "decision", "relation")

VERBATIM_CONFIDENCE = 0.6
ADD_CONFIDENCE = 0.7
UPDATE_CONFIDENCE_GAIN = 0.1


@dataclass(frozen=True, slots=True)
class Record:
    """One memory node. `owner` is whom it concerns, `source` who said or observed it.

    `turn_created` is the writing position; `turn` is the index in the session of a verbatim message, 0 for a derived
    record. `superseded_by` is the id of the next version, "" for a head.

    Example:
        Record("04a45fa1", "prefers tea", owner="Bob", source="Alice", layer="per_speaker_profile", utype="observation")
    """

    entry_id: str
    content: str
    owner: str
    source: str
    layer: str
    utype: str = "fact"
    session: str = ""
    turn: int = 0
    turn_created: int = 0
    ts: str = ""
    from_ids: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    superseded_by: str = ""
    confidence: float = ADD_CONFIDENCE

    @property
    def is_head(self) -> bool:
        """True while no later version supersedes this record."""
        return not self.superseded_by

    def superseded(self, new_id: str) -> Record:
        """The same record, marked as superseded by `new_id`."""
        return Record(
            self.entry_id, self.content, self.owner, self.source, self.layer, self.utype, self.session, self.turn,
            self.turn_created, self.ts, self.from_ids, self.links, new_id, self.confidence,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """All fields (Table 6) as JSON values."""
        return {
            "entry_id": self.entry_id,
            "content": self.content,
            "owner": self.owner,
            "source": self.source,
            "layer": self.layer,
            "utype": self.utype,
            "session": self.session,
            "turn": self.turn,
            "turn_created": self.turn_created,
            "ts": self.ts,
            "from_ids": list(self.from_ids),
            "links": list(self.links),
            "superseded_by": self.superseded_by,
            "confidence": self.confidence,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Record:
        """Inverse of `to_dict`; missing fields take their default (a missing text is ""), unknown ones are ignored."""
        return cls(
            entry_id=fields.get("entry_id") or "",
            content=fields.get("content") or "",
            owner=fields.get("owner") or "",
            source=fields.get("source") or "",
            layer=fields.get("layer") or "",
            utype=fields.get("utype") or "fact",
            session=fields.get("session") or "",
            turn=fields.get("turn") or 0,
            turn_created=fields.get("turn_created") or 0,
            ts=fields.get("ts") or "",
            from_ids=tuple(fields.get("from_ids") or ()),
            links=tuple(fields.get("links") or ()),
            superseded_by=fields.get("superseded_by") or "",
            confidence=fields.get("confidence", ADD_CONFIDENCE),
        )


@dataclass(frozen=True, slots=True)
class Edge:
    """An UPDATE: the record `old` was superseded by the record `new` (both entry ids)."""

    old: str
    new: str

    def to_dict(self) -> dict[str, str]:
        return {"old": self.old, "new": self.new}
