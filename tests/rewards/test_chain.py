import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_env.records import Edge, Record
from rewards import RewardWeights, Scorer, chain_reward
from rewards.tokens import unicode_tokens
from tests.rewards import plain
from tests.rewards.examples import entry, state, states


def change(old, new, **coordinates):
    first = entry(old, entry_id=f"{old}/old", superseded_by=f"{new}/new", **coordinates)
    return state(first, entry(new, entry_id=f"{new}/new", **coordinates), edges=[(f"{old}/old", f"{new}/new")])


TEA_TO_COFFEE = change("Alice likes tea", "Alice likes coffee now")


def test_by_hand():
    assert chain_reward(TEA_TO_COFFEE, TEA_TO_COFFEE) == 1.0
    new_only = change("entirely different words here", "Alice likes coffee now")
    old = plain.similarity("entirely different words here", "Alice likes tea")
    assert chain_reward(new_only, TEA_TO_COFFEE) == 0.50 * old + 0.50 * 1.0  # one edge each side: 2 w / 2


def test_without_edges():
    none = state(entry("Alice likes tea"))
    assert chain_reward(none, none) == chain_reward({}, {}) == 1.0
    assert chain_reward(TEA_TO_COFFEE, none) == 0.0
    assert chain_reward(none, TEA_TO_COFFEE) == 0.0


def test_the_direction_of_an_edge_counts():
    back = change("Alice likes coffee now", "Alice likes tea")
    assert chain_reward(back, TEA_TO_COFFEE) < 1.0


@pytest.mark.parametrize(("coordinate", "value"), [("owner", 0.0), ("layer", 0.0), ("source", 1.0)])
def test_owner_and_layer_must_be_equal_the_source_need_not(coordinate, value):
    other = change("Alice likes tea", "Alice likes coffee now", **{coordinate: "other"})
    assert chain_reward(other, TEA_TO_COFFEE) == value


def test_an_edge_lies_where_its_old_record_lies():
    """An UPDATE reuses the coordinates, so a new record that lies elsewhere is not what an edge is matched by."""
    moved = change("Alice likes tea", "Alice likes coffee now")
    moved["entries"][1] |= {"owner": "Bob", "layer": "group_insight"}
    assert chain_reward(moved, TEA_TO_COFFEE) == 1.0


def test_an_extra_edge_lowers_the_score():
    extra = change("one", "two")
    both = state(*TEA_TO_COFFEE["entries"], *extra["entries"])
    both["update_edges"] = TEA_TO_COFFEE["update_edges"] + extra["update_edges"]
    assert chain_reward(both, TEA_TO_COFFEE) == chain_reward(TEA_TO_COFFEE, both) == 2 * 1.0 / 3


def test_a_weight_at_the_threshold_matches():
    """New contents equal, old ones without anything in common: exactly 0.50."""
    predicted, reference = change("xxx", "Alice likes tea"), change("yyy", "Alice likes tea")
    assert chain_reward(predicted, reference) == 0.50
    assert chain_reward(predicted, reference, Scorer(RewardWeights(threshold=0.5000001))) == 0.0


def test_the_sides_are_compared_apart_below_the_threshold_too():
    """Both sides at 0.45 alone would be dropped by Eq. 14, 1.0 and 0.2 together are kept by Eq. 17."""
    predicted, reference = change("tea", "Bob moved the review"), change("the", "Bob moved the review")
    old = plain.similarity("tea", "the")
    assert 0.0 < old < 0.5
    assert chain_reward(predicted, reference) == 0.50 * old + 0.50 * 1.0


@given(states(), states())
def test_equals_the_plain_definition(predicted, reference):
    assert chain_reward(predicted, reference) == plain.chain(predicted, reference)
    unicode = Scorer(tokenizer="unicode")
    assert chain_reward(predicted, reference, unicode) == plain.chain(predicted, reference, unicode_tokens)


@settings(max_examples=50)
@given(st.lists(states(), min_size=2, max_size=4), states())
def test_a_shared_scorer_never_changes_a_value(group, reference):
    scorer = Scorer()
    for predicted in group + group:
        assert chain_reward(predicted, reference, scorer) == plain.chain(predicted, reference)


@given(states(), states(), st.randoms(use_true_random=False))
def test_entry_ids_and_orders_do_not_matter(predicted, reference, dice):
    def renamed(memory, prefix):
        entries = [e | {"entry_id": prefix + e["entry_id"]} for e in memory["entries"]]
        edges = [{key: prefix + name for key, name in edge.items()} for edge in memory["update_edges"]]
        return {"entries": dice.sample(entries, len(entries)), "update_edges": dice.sample(edges, len(edges))}

    assert chain_reward(renamed(predicted, "p"), renamed(reference, "r")) == chain_reward(predicted, reference)


@given(states())
def test_a_state_agrees_with_itself(memory):
    with_content = [e | {"content": e["content"] + " tea"} for e in memory["entries"]]
    assert chain_reward(memory | {"entries": with_content}, memory | {"entries": with_content}) == 1.0


@given(states(), states())
def test_objects_and_dicts_score_the_same(predicted, reference):
    class State:
        def __init__(self, memory):
            self.memory = memory

        def derived(self):
            return tuple(Record.from_dict(e) for e in self.memory["entries"])

        def edges(self):
            return tuple(Edge(**edge) for edge in self.memory["update_edges"])

    assert chain_reward(State(predicted), State(reference)) == chain_reward(predicted, reference)


def test_an_edge_whose_records_are_missing_counts_but_matches_nothing():
    dangling = {"entries": [], "update_edges": [{"old": "x", "new": "y"}]}
    assert chain_reward(dangling, dangling) == 0.0
    half = {"entries": TEA_TO_COFFEE["entries"][1:], "update_edges": TEA_TO_COFFEE["update_edges"]}
    assert chain_reward(half, TEA_TO_COFFEE) == 0.50  # the new side still agrees
    assert chain_reward({"entries": None, "update_edges": [{}]}, {"update_edges": None}) == 0.0
