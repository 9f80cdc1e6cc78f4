import dataclasses

import pytest

from memory_env.records import Edge, Record

FULL = {
    "entry_id": "04a45fa1",
    "content": "prefers tea",
    "owner": "Bob",
    "source": "Alice",
    "layer": "per_speaker_profile",
    "utype": "observation",
    "session": "s1",
    "turn": 0,
    "turn_created": 3,
    "ts": "2026-01-01",
    "from_ids": ["aaaaaaaa"],
    "links": ["bbbbbbbb"],
    "superseded_by": "cccccccc",
    "confidence": 0.8,
}


def test_a_record_survives_the_round_trip_with_every_field_of_table_6():
    assert Record.from_dict(FULL).to_dict() == FULL


def test_missing_and_null_fields_take_their_default():
    record = Record.from_dict({"content": "x", "owner": None})
    assert (record.entry_id, record.owner, record.utype, record.links, record.confidence) == ("", "", "fact", (), 0.7)


def test_superseding_changes_that_one_field_of_a_copy():
    record = Record.from_dict({**FULL, "superseded_by": ""})
    assert record.is_head
    newer = record.superseded("dddddddd")
    assert record.is_head and not newer.is_head
    assert newer == dataclasses.replace(record, superseded_by="dddddddd")


def test_records_and_edges_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Record.from_dict(FULL).content = "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        Edge("a", "b").old = "c"
    assert Edge("a", "b").to_dict() == {"old": "a", "new": "b"}
