import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env import MemoryState, step
from memory_env.conversation import Message, Segment
from memory_env.records import DERIVED_LAYERS, DERIVED_UTYPES
from rollout.action_schema import action_schema

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
SEGMENT = Segment(0, "s0", "2025-01-01", (Message("Ana", "hello", "2025-01-01", "t0", "s0", 0),))


def accepts(output):
    return jsonschema.Draft202012Validator(action_schema()).is_valid(output)


def report(output):
    return step(MemoryState.empty(), SEGMENT, json.dumps(output))[1]


ADD = {"action": "ADD", "owner": "Ana", "source": "Ana", "layer": "per_speaker_core", "utype": "fact", "content": "x"}


@pytest.mark.parametrize("layer", DERIVED_LAYERS)
@pytest.mark.parametrize("utype", DERIVED_UTYPES)
def test_every_layer_and_utype_passes(layer, utype):
    assert accepts({"actions": [{**ADD, "layer": layer, "utype": utype}]})


def test_updates_and_noops_pass_and_an_empty_list_does_not():
    assert accepts({"actions": [{"action": "UPDATE", "entry_id": "ab12", "content": "y"}, {"action": "NOOP"}]})
    for bad in ({"actions": []}, [], {"actions": [ADD], "note": 1}, {"actions": [{"action": "DELETE"}]}, {"actions": [{}]}):
        assert not accepts(bad)


text = st.text(min_size=1, max_size=3)
values = st.one_of(text, st.integers(), st.none(), st.sampled_from([*DERIVED_LAYERS, *DERIVED_UTYPES, "ADD", "UPDATE", "NOOP"]))
actions = st.dictionaries(st.sampled_from([*ADD, "entry_id"]), values, max_size=7) | st.fixed_dictionaries(
    {"action": st.just("ADD"), "owner": text, "source": text, "layer": st.sampled_from(DERIVED_LAYERS),
     "utype": st.sampled_from(DERIVED_UTYPES), "content": text}
)  # fmt: skip


def is_consistent(item):
    """What a schema can't say: group layers belong to GROUP, person layers to members; no text is blank."""
    of_group = item.get("owner") == "GROUP", str(item.get("layer", "")).startswith("group")
    return of_group[0] == of_group[1] and all(value.strip() for value in item.values())


@given(st.lists(actions, min_size=1, max_size=3))
def test_what_the_grammar_lets_through_has_the_right_shape_to_the_environment(items):
    output = {"actions": items}
    if not accepts(output):
        return
    made = report(output)
    assert made.json_valid and made.attempted == len(items)
    if all(is_consistent(item) for item in items):
        assert made.schema_valid_actions == len(items)
