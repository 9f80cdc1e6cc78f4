import json
import os
import subprocess
import sys

import pytest

from memory_env.records import Record
from memory_env.state import MemoryState
from memory_env.step import step
from tests.memory_env.chats import NOOP, add, output, segment, update


@pytest.fixture
def past():
    """Alice: "a0" superseded by "a1", and "b0"; GROUP: "g0". Ids by content."""
    state, report = step(
        MemoryState.empty(),
        segment(0),
        [add("a0"), add("b0", "Bob", "Alice", "per_speaker_profile", "stance"), add("g0", "GROUP", "Bob", "group_insight")],
    )
    ids = dict(zip(("a0", "b0", "g0"), report.created_ids, strict=True))
    state, report = step(state, segment(1), [update(ids["a0"], "a1")])
    return state, {**ids, "a1": report.created_ids[0]}


def applied(past, *actions, **kwargs):
    """(contents newly created, report) of stepping `actions` from `past`."""
    state, report = step(past[0], segment(2), list(actions), **kwargs)
    before = {record.entry_id for record in past[0].derived()}
    return [record.content for record in state.derived() if record.entry_id not in before], report


def test_every_message_goes_into_system_1_whatever_the_output():
    for completion in ("garbage", output(NOOP), output(add("x"))):
        state, _ = step(MemoryState.empty(), segment(4, "hi\nthere", " second "), completion)
        first, second = state.verbatim()
        assert first == Record(
            first.entry_id, "hi\nthere", "Alice", "Alice", "per_speaker_episodic", "utterance",
            "s4", 0, 4, "2026-01-05T10:00:00", confidence=0.6,
        )  # fmt: skip
        assert (second.content, second.owner, second.turn) == (" second ", "Bob", 1)
        assert state.roster == ("Alice", "Bob")
        assert len({first.entry_id, second.entry_id}) == 2


def test_an_add_becomes_a_record_with_the_segments_coordinates(past):
    state, report = step(past[0], segment(2, "Carol moved to Leeds", "nice", "hm"), [add("moved to Leeds ", "Carol")])
    (record,) = (state.get(entry_id) for entry_id in report.created_ids)
    assert record.content == "moved to Leeds "
    assert (record.owner, record.source, record.layer, record.utype) == ("Carol", "Alice", "per_speaker_core", "fact")
    assert (record.session, record.turn, record.turn_created, record.ts) == ("s2", 0, 2, "2026-01-03")
    assert (record.links, record.superseded_by, record.confidence) == ((), "", 0.7)
    assert [state.get(message).content for message in record.from_ids] == ["Carol moved to Leeds"]


def test_an_update_inherits_coordinates_and_appends_a_version(past):
    state, report = step(past[0], segment(2), [update(past[1]["b0"], "b1")])
    (record,) = (state.get(entry_id) for entry_id in report.created_ids)
    assert (record.owner, record.source, record.layer, record.utype) == ("Bob", "Alice", "per_speaker_profile", "stance")
    assert record.links == (past[1]["b0"],) and record.confidence == 0.7 + 0.1
    assert state.get(past[1]["b0"]).superseded_by == record.entry_id
    assert state.get(past[1]["b0"]).content == "b0"
    assert report.updated_from == (past[1]["b0"],)


def test_confidence_rises_to_one_and_stays():
    state, report = step(MemoryState.empty(), segment(0), [add("0")])
    seen = []
    for number in range(1, 6):
        state, report = step(state, segment(number), [update(report.created_ids[0], str(number))])
        seen.append(state.get(report.created_ids[0]).confidence)
    assert seen == pytest.approx([0.8, 0.9, 1.0, 1.0, 1.0]) and max(seen) <= 1.0


def test_a_single_noop_writes_nothing(past):
    contents, report = applied(past, NOOP)
    assert contents == []
    assert (report.noop, report.applied, report.attempted, report.errors) == (1, 0, 1, ())


def test_a_noop_beside_other_actions_is_one_error_and_the_others_apply(past):
    contents, report = applied(past, add("x"), NOOP)
    assert contents == ["x"] and len(report.errors) == 1 and report.noop == 0
    assert report.schema_valid_actions == 2


def test_a_second_noop_is_a_duplicate(past):
    _, report = applied(past, NOOP, NOOP)
    assert report.noop == 1 and len(report.errors) == 1 and "duplicate" in report.errors[0]


def test_output_that_is_no_action_list_is_one_error(past):
    state, report = step(past[0], segment(2), "nonsense", hit_length_limit=True)
    assert report.to_dict() == {
        "json_valid": False, "attempted": 0, "applied": 0, "noop": 0, "errors": [report.errors[0]], "created_ids": [],
        "updated_from": [], "schema_valid_actions": 0, "too_many_actions": False, "hit_length_limit": True,
    }  # fmt: skip
    assert state.derived() == past[0].derived() and len(state.verbatim()) == len(past[0].verbatim()) + 3


def test_an_empty_list_is_valid_json_and_one_error(past):
    _, report = applied(past)
    assert report.json_valid and report.attempted == 0 and len(report.errors) == 1


def test_text_and_parsed_actions_give_the_same_step(past):
    actions = [add("x"), update(past[1]["a1"], "a2"), 3]
    assert step(past[0], segment(2), output(*actions)) == step(past[0], segment(2), actions)


@pytest.mark.parametrize(
    "action",
    [
        add("x", owner="GROUP"),
        add("x", owner="GROUP", layer="per_speaker_profile"),
        add("x", layer="group_interaction"),
        add("x", owner="Bob", layer="group_insight"),
        add("x", owner="Dave"),
        add("x", source="Dave"),
        add("x", source="GROUP"),
        add("x", "GROUP", "GROUP", "group_insight"),
        add("x", owner="alice"),
        add("x", owner="Alice "),
        add("x", owner="ALL"),
    ],
)
def test_coordinates_outside_the_contract_are_rejected_though_well_formed(past, action):
    contents, report = applied(past, action, add("kept"))
    assert contents == ["kept"]
    assert (len(report.errors), report.schema_valid_actions, report.applied) == (1, 2, 1)


def test_members_of_this_segment_are_in_the_roster_and_later_ones_are_not():
    early, late = segment(0, "hi", speakers=("Alice",)), segment(1, "hello", speakers=("Zoe",))
    state, report = step(MemoryState.empty(), early, [add("x", "Zoe", "Alice")])
    assert report.applied == 0
    state, report = step(state, late, [add("x", "Zoe", "Alice")])
    assert report.applied == 1 and state.roster == ("Alice", "Zoe")


def test_a_member_named_like_the_group_in_a_hand_made_segment_is_no_source():
    hostile = segment(0, "hi", "hello", speakers=("GROUP", "Alice"))
    _, report = step(MemoryState.empty(), hostile, [add("x", "GROUP", "GROUP", "group_insight"), add("y", owner="GROUP")])
    assert report.applied == 0 and len(report.errors) == 2


def test_an_update_that_cannot_stand_is_rejected(past):
    state, ids = past
    message_id = state.verbatim()[0].entry_id
    for action, why in [
        (update("ffffffff", "x"), "no known entry_id"),
        (update(message_id, "x"), "no known entry_id"),
        (update(ids["a1"].upper() + " ", "x"), "no known entry_id"),
        (update(ids["a0"], "x"), "superseded"),
        (update(ids["a1"], "  A1! "), "unchanged"),
    ]:
        contents, report = applied(past, action)
        assert contents == [] and report.updated_from == () and report.applied == 0
        assert len(report.errors) == 1 and why in report.errors[0]
        assert report.schema_valid_actions == 1


def test_a_record_is_updated_at_most_once_in_an_output(past):
    contents, report = applied(past, update(past[1]["a1"], "first"), update(past[1]["a1"], "second"))
    assert contents == ["first"] and len(report.errors) == 1 and report.updated_from == (past[1]["a1"],)


def test_a_rejected_update_does_not_block_a_later_one_of_the_same_record(past):
    contents, report = applied(past, update(past[1]["a1"], "a1"), update(past[1]["a1"], "better"))
    assert contents == ["better"] and len(report.errors) == 1


def test_a_record_of_the_same_output_cannot_be_cited(past):
    _, report = step(past[0], segment(2), [add("x")])
    contents, report = applied(past, add("x"), update(report.created_ids[0], "y"))
    assert contents == ["x"] and "no known entry_id" in report.errors[0]


def test_an_unresolved_update_with_coordinates_is_an_error_and_an_add(past):
    coordinates = {"owner": "Bob", "source": "Alice", "layer": "per_speaker_profile"}
    contents, report = applied(past, update("ffffffff", "new", **coordinates))
    assert contents == ["new"] and report.applied == 1 and len(report.errors) == 1
    assert len(report.created_ids) == 1 and report.updated_from == ()
    state, _ = step(past[0], segment(2), [update("ffffffff", "new", **coordinates, utype="stance")])
    record = state.derived()[-1]
    assert (record.owner, record.utype, record.links, record.confidence) == ("Bob", "stance", (), 0.7)
    state, _ = step(past[0], segment(2), [update("ffffffff", "new", **coordinates, utype="gossip")])
    assert state.derived()[-1].utype == "fact"


@pytest.mark.parametrize(
    "coordinates",
    [
        {"owner": "Bob", "source": "Alice"},
        {"owner": "Dave", "source": "Alice", "layer": "per_speaker_core"},
        {"owner": "Bob", "source": "GROUP", "layer": "per_speaker_core"},
        {"owner": "GROUP", "source": "Alice", "layer": "per_speaker_core"},
        {"owner": "Bob", "source": "Alice", "layer": "per_speaker_episodic"},
        {"owner": ["Bob"], "source": {"a": 1}, "layer": None},
    ],
)
def test_an_unresolved_update_without_sound_coordinates_is_only_an_error(past, coordinates):
    contents, report = applied(past, update("ffffffff", "new", **coordinates))
    assert contents == [] and report.applied == 0 and len(report.errors) == 1


def test_duplicates_are_errors_and_not_applied(past):
    contents, report = applied(
        past,
        add("x y"),
        add(" «X» Y.", utype="stance"),
        add("x y", "Bob"),
        update("ffffffff", "x y", owner="Alice", source="Alice", layer="per_speaker_core"),
        update(past[1]["a1"], "z"),
        update(past[1]["a1"], "Ｚ!"),
    )
    assert contents == ["x y", "x y", "z"]
    assert [error.partition(":")[0] for error in report.errors] == ["action 1", "action 3", "action 5"]


def test_an_update_that_became_an_add_makes_the_same_add_a_duplicate(past):
    coordinates = {"owner": "Bob", "source": "Alice", "layer": "per_speaker_core"}
    contents, report = applied(past, update("ffffffff", "new", **coordinates), add("NEW", "Bob"))
    assert contents == ["new"] and len(report.errors) == 2


def test_a_repetition_of_what_memory_holds_is_applied(past):
    contents, report = applied(past, add("a1"))
    assert contents == ["a1"] and report.errors == ()


def test_actions_beyond_the_budget_are_neither_applied_nor_errors(past):
    actions = [add(f"x{index}") for index in range(8)] + [{"action": "BAD"}, add("late"), NOOP]
    contents, report = applied(past, *actions)
    assert len(contents) == 8 and report.errors == ()
    assert report.too_many_actions and report.attempted == 11 and report.schema_valid_actions == 10
    assert not applied(past, *actions[:8])[1].too_many_actions


def test_strict_rejects_the_whole_output_on_any_error(past):
    contents, report = applied(past, add("x"), update(past[1]["a1"], "y"), 3, strict=True)
    assert contents == [] and (report.applied, report.created_ids, report.updated_from) == (0, (), ())
    assert len(report.errors) == 1 and report.schema_valid_actions == 2
    contents, report = applied(past, add("x"), update(past[1]["a1"], "y"), strict=True)
    assert contents == ["x", "y"] and report.errors == ()


def test_ids_are_deterministic_and_depend_on_content_and_place(past):
    first = applied(past, add("x"), add("y"))[1].created_ids
    assert first == applied(past, add("x"), add("y"))[1].created_ids
    assert set(first).isdisjoint(applied(past, add("y"), add("x"))[1].created_ids)
    assert all(len(entry_id) == 8 and set(entry_id) <= set("0123456789abcdef") for entry_id in first)


def test_ids_stay_unique_when_a_segment_is_written_twice():
    state = MemoryState.empty()
    for _ in range(3):
        state, report = step(state, segment(0), [add("x")])
        assert report.applied == 1
    assert len(state.verbatim()) == 9 and len({record.entry_id for record in state.verbatim()}) == 9
    assert len({record.entry_id for record in state.derived()}) == 3
    assert [record.content for record in state.verbatim()[:3]] == [record.content for record in state.verbatim()[6:]]


def test_colliding_hashes_get_ids_of_their_own(monkeypatch, past):
    """With 2 possible hash values almost everything collides."""
    real = step.__globals__["entry_id"]

    def poor(*parts, attempt=0):
        return real(*parts, attempt=attempt) if attempt > 2 else f"0000000{int(real(*parts), 16) % 2}"

    step.__globals__["prepare"].cache_clear()
    monkeypatch.setitem(step.__globals__, "entry_id", poor)
    state, report = step(past[0], segment(7), [add(f"x{index}") for index in range(6)])
    again = step(past[0], segment(7), [add(f"x{index}") for index in range(6)])
    step.__globals__["prepare"].cache_clear()
    assert len(set(report.created_ids)) == 6 and (state, report) == again
    assert len({record.entry_id for record in (*state.verbatim(), *state.derived())}) == 3 * 3 + 4 + 6


@pytest.mark.parametrize(
    "completion",
    [
        output(*[add(f"x{index}") for index in range(10_000)]),
        output(*([{"action": "ADD"}] * 10_000)),
        output(add("x" * 10_000_000)),
        output(add("\x00\u202e\ud800 surrogate", "Alice")),
        '{"actions": [NaN, Infinity, 1e999, ' + "9" * 4000 + "]}",
        '{"actions": [{"action": NaN, "content": Infinity}]}',
        '{"actions": [' + '{"action": "ADD", "owner": ' + "[" * 300 + "]" * 300 + "}]}",
        '{"actions": [{"action": "ADD", "action": "NOOP"}]}',
        "{" * 100_000,
        json.dumps({"actions": [{"action": "UPDATE", "entry_id": "a" * 100_000, "content": "x"}]}),
    ],
)
def test_hostile_output_never_raises_and_the_counts_add_up(past, completion):
    state, report = step(past[0], segment(2), completion)
    assert json.loads(json.dumps([state.to_dict(), report.to_dict()]))
    assert report.applied == len(report.created_ids)
    assert report.applied + report.noop + len(report.errors) + max(0, report.attempted - 8) >= report.attempted
    assert len("".join(report.errors)) < 10_000


def test_the_same_bytes_under_another_hash_seed(repository):
    script = (
        "import json\n"
        "from memory_env.state import MemoryState\n"
        "from memory_env.step import step\n"
        "from tests.memory_env.chats import *\n"
        "state, lines = MemoryState.empty(), []\n"
        "for t in range(4):\n"
        "    heads = state.heads()\n"
        "    actions = [add(f'fact {t} {i} hello from Bob', p) for i, p in enumerate(PEOPLE)]\n"
        "    actions += [update(heads[0].entry_id, f'newer {t}')] if heads else []\n"
        "    state, report = step(state, segment(t), actions)\n"
        "    lines += [state.to_dict(), report.to_dict(), [r.to_dict() for r in state.verbatim()]]\n"
        "print(json.dumps(lines))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], cwd=repository, env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1
