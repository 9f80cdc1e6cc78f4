"""Random outputs against the plain rules, and what must hold whatever a Writer writes."""

import json
import pickle

from hypothesis import given
from hypothesis import strategies as st

from memory_env.actions import parse_completion
from memory_env.state import MemoryState
from memory_env.step import step
from tests.memory_env.chats import PEOPLE, segment
from tests.memory_env.plain_step import plain_step, well_formed

JSON_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
JSON = st.recursive(
    JSON_SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from([*PEOPLE, *PEOPLE, "GROUP", "Dave", "ALL", "alice", "", None, 3])
LAYERS = st.sampled_from(
    ["per_speaker_core", "per_speaker_profile", "group_interaction", "group_insight", "per_speaker_episodic", "", None, []]
)
UTYPES = st.sampled_from(["fact", "stance", "observation", "decision", "relation", "utterance", None])
CONTENTS = st.sampled_from(["tea", " TEA", "tea.", "ｔea", "!", "?", "tea  pot", "coffee", "x\ny", "\ud800", "", "  ", None, 7]) | st.text(max_size=4)
# An id is a number that stands for a record of the state (modulo), or no id at all.
IDS = st.integers(0, 30) | st.sampled_from(["ffffffff", "", "message", None, 4.5])

COORDINATES = {"owner": NAMES, "source": NAMES, "layer": LAYERS, "utype": UTYPES}
ACTIONS = st.one_of(
    st.fixed_dictionaries({"action": st.just("ADD"), "content": CONTENTS, **COORDINATES}),
    st.fixed_dictionaries(
        {"action": st.just("ADD"), "content": CONTENTS, "layer": st.just("per_speaker_core"), "utype": st.just("fact")}
        | dict.fromkeys(("owner", "source"), st.sampled_from(PEOPLE))
    ),
    st.fixed_dictionaries({"action": st.just("UPDATE"), "entry_id": IDS, "content": CONTENTS}, optional=COORDINATES),
    st.just({"action": "NOOP"}),
    JSON,
)
OUTPUTS = st.lists(ACTIONS, max_size=10)
EPISODES = st.lists(st.tuples(OUTPUTS, st.integers(0, 6)), min_size=1, max_size=5)


def resolved(actions, state):
    """`actions` with id numbers replaced by ids of the state's derived records, "message" by one of a message."""
    derived, messages = state.derived(), state.verbatim()

    def entry_id(value):
        if value == "message" and messages:
            return messages[0].entry_id
        if isinstance(value, int) and not isinstance(value, bool) and derived:
            return derived[value % len(derived)].entry_id
        return value

    return [
        {**action, "entry_id": entry_id(action["entry_id"])} if isinstance(action, dict) and "entry_id" in action else action
        for action in actions
    ]


def messages_of(position, count):
    return segment(position, *(f"tea {index}" for index in range(count))) if count else segment(position, speakers=("Bob",))


def as_plain(state):
    place = {record.entry_id: index for index, record in enumerate(state.derived())}
    return [
        {key: getattr(record, key) for key in ("owner", "source", "layer", "utype", "content")}
        | {
            "older": place[record.links[0]] if record.links else None,
            "newer": place[record.superseded_by] if record.superseded_by else None,
        }
        for record in state.derived()
    ]


@given(EPISODES)
def test_the_environment_does_what_the_plain_rules_say(episode):
    state = MemoryState.empty()
    for position, (raw, count) in enumerate(episode):
        current = messages_of(position, count)
        actions = resolved(raw, state)
        roster = set(state.roster) | {message.speaker for message in current.messages}
        index_of_id = {record.entry_id: index for index, record in enumerate(state.derived())}
        expected, applied, noop, errors, updated = plain_step(
            as_plain(state), index_of_id, roster, actions, len(current.messages)
        )
        before = state
        state, report = step(state, current, actions)
        assert as_plain(state) == expected
        assert (report.applied, report.noop, len(report.errors)) == (applied, noop, errors)
        assert report.updated_from == tuple(before.derived()[index].entry_id for index in updated)
        assert report.schema_valid_actions == sum(map(well_formed, actions))


@given(EPISODES)
def test_nothing_is_ever_deleted_or_overwritten(episode):
    state = MemoryState.empty()
    for position, (raw, count) in enumerate(episode):
        current = messages_of(position, count)
        before = state
        state, report = step(state, current, resolved(raw, state))
        for old, new in zip(before.derived(), state.derived(), strict=False):
            assert new == (old if old.superseded_by == new.superseded_by else old.superseded(new.superseded_by))
            assert old.superseded_by in ("", new.superseded_by)
        assert state.verbatim()[: len(before.verbatim())] == before.verbatim()
        assert [message.content for message in state.verbatim()[len(before.verbatim()) :]] == [
            message.content for message in current.messages
        ]
        created = state.derived()[len(before.derived()) :]
        assert tuple(record.entry_id for record in created) == report.created_ids
        assert state.edges()[: len(before.edges())] == before.edges()

        ids = [record.entry_id for record in (*state.verbatim(), *state.derived())]
        assert len(set(ids)) == len(ids)
        assert set(state.heads()) == {record for record in state.derived() if not record.superseded_by}
        assert {edge.old for edge in state.edges()} == {r.entry_id for r in state.derived() if r.superseded_by}
        for edge in state.edges():
            assert state.get(edge.new).links == (edge.old,) and state.get(edge.old).superseded_by == edge.new
        own = {message.entry_id for message in state.verbatim() if message.turn_created == position}
        assert all(set(record.from_ids) <= own for record in created)


@given(EPISODES)
def test_the_counts_of_a_report_add_up(episode):
    state = MemoryState.empty()
    for position, (raw, count) in enumerate(episode):
        current = messages_of(position, count)
        actions = resolved(raw, state)
        state, report = step(state, current, actions)
        budget = max(8, 2 * len(current.messages))
        over = max(0, report.attempted - budget)
        rejected = sum("applied as ADD" not in error for error in report.errors) if actions else 0
        assert report.attempted == len(actions) == report.applied + report.noop + rejected + over
        assert report.too_many_actions == (over > 0)


@given(OUTPUTS, st.lists(OUTPUTS, min_size=2, max_size=4))
def test_forks_neither_see_nor_change_each_other(past, siblings):
    state, _ = step(MemoryState.empty(), segment(0, "tea", "coffee"), past)
    before = pickle.dumps(state.to_dict())
    outputs = [resolved(actions, state) for actions in siblings]
    alone = [step(pickle.loads(pickle.dumps(state)), segment(1, "tea"), actions) for actions in outputs]
    together = [step(state, segment(1, "tea"), actions) for actions in outputs]
    assert together == alone
    assert pickle.dumps(state.to_dict()) == before
    assert [fork.to_dict() for fork, _ in together] == [fork.to_dict() for fork, _ in alone]


@given(EPISODES)
def test_strict_applies_all_or_nothing(episode):
    state = MemoryState.empty()
    for position, (raw, count) in enumerate(episode):
        current = messages_of(position, count)
        actions = resolved(raw, state)
        lenient, expected = step(state, current, actions)
        strict, report = step(state, current, actions, strict=True)
        assert report.errors == expected.errors and report.schema_valid_actions == expected.schema_valid_actions
        if expected.errors:
            assert strict.derived() == state.derived() and strict.verbatim() == lenient.verbatim()
            assert (report.applied, report.noop, report.created_ids) == (0, 0, ())
        else:
            assert (strict, report) == (lenient, expected)
        state = strict


@given(st.text() | JSON.map(json.dumps) | OUTPUTS.map(lambda actions: json.dumps({"actions": actions})))
def test_any_text_is_parsed_without_raising(text):
    parsed = parse_completion(text)
    try:
        value = json.loads(text.strip(), strict=False)
    except ValueError:
        value = None
    assert parsed.valid == (isinstance(value, dict) and isinstance(value.get("actions"), list))
    assert repr(parsed.actions) == repr(value["actions"] if parsed.valid else [])
    _, report = step(MemoryState.empty(), segment(0), text)
    assert json.dumps(report.to_dict())
