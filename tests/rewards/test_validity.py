import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.records import Record
from rewards.validity import attempt_key, stops_after_novel, validity
from rewards.weights import RewardWeights
from tests.rewards import plain
from tests.rewards.examples import entry, memories, state

NOOP = {"action": "NOOP"}
EMPTY = state()


def add(content, owner="Alice", source="Alice", layer="per_speaker_core"):
    return {"action": "ADD", "owner": owner, "source": source, "layer": layer, "utype": "fact", "content": content}


def update(entry_id, content):
    return {"action": "UPDATE", "entry_id": entry_id, "content": content}


def report(attempted, schema_valid=None, json_valid=True, errors=(), **rest):
    found = {"json_valid": json_valid, "attempted": attempted, "errors": list(errors)} | rest
    return found if schema_valid is None else found | {"schema_valid_actions": schema_valid}


def parts(actions, report, pre_state=EMPTY):
    value = validity(actions, report, pre_state)
    return value.json, value.schema, value.dup, value.stop


def test_a_perfect_output():
    value = validity([add("tea"), add("coffee")], report(2, 2), EMPTY)
    assert (value.json, value.schema, value.dup, value.stop, value.valid) == (1.0, 1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("missing", [{"attempted": 0}, {}])
def test_nothing_attempted_is_zero_throughout(missing):
    assert parts([], {"json_valid": True, "schema_valid_actions": 3} | missing) == (0.0, 0.0, 0.0, 0.0)


def test_invalid_json_with_attempts_keeps_only_what_the_report_still_says():
    assert parts([], report(2, json_valid=False)) == (0.0, 0.0, 0.0, 0.0)
    assert parts([add("tea")], report(1, 1, json_valid=False)) == (0.0, 1.0, 1.0, 1.0)


def test_the_attempted_count_is_the_reports_else_the_lists_length():
    actions = [add("tea"), add("tea"), add("milk")]
    assert parts(actions, report(4, 2)) == (1.0, 2 / 4, 2 / 4, 1.0)
    for missing in ({}, {"attempted": None}, {"attempted": "3"}, {"attempted": float("nan")}):
        assert parts(actions, {"json_valid": True, "schema_valid_actions": 2} | missing) == (1.0, 2 / 3, 2 / 3, 1.0)


def test_a_missing_schema_count_is_attempted_minus_errors():
    actions = [add("tea"), add("milk"), add("rice")]
    assert parts(actions, report(3, errors=["x"]))[1] == 2 / 3
    assert parts(actions, {"json_valid": True, "attempted": 3})[1] == 1.0
    assert parts(actions, report(3, errors=["x"] * 5))[1] == 0.0
    assert parts(actions, report(3, json_valid=False))[1] == 0.0


def test_fractions_are_clipped():
    assert parts([add("tea"), add("milk")], report(1, 5))[1:3] == (1.0, 1.0)
    assert parts([add("tea")], report(1, -2))[1] == 0.0
    assert parts([add("tea")], report(-1, 1)) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (add("Likes  TEA"), add(" likes tea\n"), True),
        (add("likes tea"), add("«Ｌikes» tea."), True),
        (add("likes tea"), add("likes teas"), False),
        (add("!"), add("?"), False),
        (add("tea"), add("tea", owner="Bob"), False),
        (add("tea"), add("tea", source="Bob"), False),
        (add("tea"), add("tea", layer="group_insight"), False),
        (add("tea"), add("tea") | {"utype": "stance"}, True),  # utype is no part of the key
        (add("чай"), add("кот"), False),
        (update("d1", "Tea"), update("d1", "tea!"), True),
        (update("d1", "tea"), update("d2", "tea"), False),
        (update("d1", "tea"), update("d1", "tea") | {"owner": "Bob"}, True),
        (NOOP, NOOP | {"content": "nothing"}, True),
        (NOOP, add("tea"), False),
        ({"action": "ADD"}, add("", "", "", ""), True),
        ({"action": "DROP", "x": 1, "y": 2}, {"y": 2, "x": 1, "action": "DROP"}, True),
        ({"action": "DROP"}, {"action": "KEEP"}, False),
        ({"action": ["ADD"]}, {}, False),
        (5, "5", False),
        (None, None, True),
        ([1, {"a": 2}], [1, {"a": 2}], True),
    ],
)
def test_what_makes_two_actions_the_same(first, second, same):
    assert (attempt_key(first) == attempt_key(second)) is same
    assert parts([first, second], report(2, 2))[2] == (0.5 if same else 1.0)


def test_a_single_noop_is_novel_and_one_among_others_is_not():
    assert stops_after_novel([NOOP], EMPTY)
    assert not stops_after_novel([NOOP, NOOP], EMPTY)
    assert not stops_after_novel([add("tea"), NOOP], EMPTY)
    assert stops_after_novel([NOOP, add("tea")], EMPTY)


def test_an_add_is_novel_unless_said_before_or_recorded():
    recorded = state(entry("Alice likes tea", superseded_by="d9"))
    assert stops_after_novel([add("x"), add("y")], EMPTY)
    assert not stops_after_novel([add("x"), add("X! ")], EMPTY)
    assert not stops_after_novel([add("alice LIKES: tea!")], recorded)  # superseded records count
    assert stops_after_novel([add("alice LIKES tea", owner="Bob")], recorded)
    assert stops_after_novel([add("x"), add("x"), add("y")], EMPTY)  # what matters is where the output ends


def test_an_update_is_novel_if_it_changes_an_active_record():
    pre = state(entry("likes tea", entry_id="d1", superseded_by="d2"), entry("likes coffee", entry_id="d2"))
    assert stops_after_novel([update("d2", "likes water")], pre)
    assert not stops_after_novel([update("d2", " LIKES coffee.")], pre)
    assert not stops_after_novel([update("d1", "likes water")], pre)
    assert not stops_after_novel([update("d7", "likes water")], pre)
    assert not stops_after_novel([{"action": "UPDATE", "content": "likes water"}], pre)
    assert stops_after_novel([update("d2", "likes water")] * 2, pre)  # earlier actions of the output do not matter
    assert stops_after_novel([add("likes water"), update("d2", "likes water")], pre)


@pytest.mark.parametrize("last", [5, None, "ADD", [], {}, {"action": "DROP"}, {"action": None}])
def test_what_is_no_action_is_not_novel(last):
    assert not stops_after_novel([add("tea"), last], EMPTY)
    assert parts([last], report(1, 0)) == (1.0, 0.0, 1.0, 0.0)


@pytest.mark.parametrize("pre_state", [None, {}, {"entries": None}, {"entries": [{}, {"content": None}, 7, "x"]}])
def test_states_that_lack_fields(pre_state):
    assert stops_after_novel([add("tea")], pre_state)
    assert not stops_after_novel([update("d1", "tea")], pre_state)


@pytest.mark.parametrize("actions", [None, {}, "ADD", 5])
def test_actions_that_are_no_list_count_as_none(actions):
    assert parts(actions, {"json_valid": True}) == (0.0, 0.0, 0.0, 0.0)
    assert parts(actions, report(2, 2)) == (1.0, 1.0, 0.0, 0.0)


@pytest.mark.parametrize("empty_report", [None, {}, object()])
def test_a_report_that_says_nothing(empty_report):
    assert parts([add("tea")], empty_report) == (0.0, 0.0, 1.0, 1.0)


def test_hostile_actions_are_scored_not_raised():
    deep = "[" * 900 + "]" * 900
    actions = [
        add(json.loads(deep)),
        {"action": "DROP", "x": json.loads(deep)},
        {"action": "UPDATE", "entry_id": 1e308},
    ]
    nested = []
    for _ in range(100_000):
        nested = [nested]
    actions += [nested, {"action": "ADD", "content": nested}, {"action": "ADD", "content": 10**5000}]
    assert parts(actions, report(6, 0)) == (1.0, 0.0, 1.0, 1.0)


@st.composite
def outputs(draw, pre_state):
    ids = [e["entry_id"] for e in pre_state] + ["zz"]
    words = st.sampled_from(["tea", "Tea ", "likes tea", "", "чай"] + [e["content"] for e in pre_state])
    owners = st.sampled_from(["Alice", "GROUP", ""])
    action = st.one_of(
        st.just(NOOP),
        st.builds(add, words, owners, st.sampled_from(["Alice", "Bob"])),
        st.builds(update, st.sampled_from(ids), words),
        st.sampled_from([{}, 5, None, {"action": "DROP"}, {"action": "ADD"}, {"action": "UPDATE"}]),
    )
    return draw(st.lists(action, max_size=6))


@given(st.data(), memories(5), st.booleans())
def test_equals_the_plain_definition(data, entries, json_valid):
    for place, e in enumerate(entries):
        e["superseded_by"] = data.draw(st.sampled_from(["", "", entries[-1]["entry_id"]])) if place else ""
    pre = state(*entries)
    actions = data.draw(outputs(entries))
    attempted = data.draw(st.sampled_from([len(actions), len(actions) + 1]))
    said = report(attempted, data.draw(st.integers(0, attempted)), json_valid)
    value = validity(actions, said, pre)
    assert (value.json, value.schema, value.dup, value.stop, value.valid) == plain.validity(actions, said, pre)
    as_records = {"entries": [Record.from_dict(e) for e in entries]}
    assert validity(actions, said, as_records) == value


def test_other_weights_are_used():
    weights = RewardWeights(json=0.0, schema=0.0, dup=1.0, stop=0.0)
    assert validity([add("x"), add("x")], report(2, 0), EMPTY, weights).valid == 0.5
