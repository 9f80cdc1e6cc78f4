"""The pairs that people are shown are the ones that the rewards were made of."""

import math

from hypothesis import given
from hypothesis import strategies as st

from rewards import Scorer, chain_reward, speaker_levenshtein
from rewards.alignment import EdgePair, RecordPair, edge_pairs, record_pairs

CONTENTS = st.sampled_from(
    ["likes tea", "likes green tea", "likes tea a lot", "has a dog", "has a big dog", "moved to Leeds", ""]
)


def entry(name, content, owner="Ann", source="Ann", layer="per_speaker_core"):
    return {"entry_id": name, "content": content, "owner": owner, "source": source, "layer": layer}


@st.composite
def states(draw):
    owners = draw(st.lists(st.sampled_from(["Ann", "Bob"]), max_size=7))
    entries = [entry(f"r{i}", draw(CONTENTS), owner) for i, owner in enumerate(owners)]
    edges = draw(st.lists(st.tuples(st.sampled_from(entries), st.sampled_from(entries)), max_size=4)) if entries else []
    return {"entries": entries, "update_edges": [{"old": a["entry_id"], "new": b["entry_id"]} for a, b in edges]}


@given(states(), states())
def test_the_pairs_add_up_to_the_f_of_every_owner(predicted, reference):
    scorer = Scorer()
    match, pairs = speaker_levenshtein(predicted, reference, scorer), record_pairs(predicted, reference, scorer)
    owner_of = {e["entry_id"]: e["owner"] for e in predicted["entries"]}
    for owner, f in match.owners.items():
        total = math.fsum(pair.kappa for pair in pairs if owner_of[pair.predicted] == owner)
        items = sum(e["owner"] == owner for side in (predicted, reference) for e in side["entries"])
        assert f == 2 * total / items
    for side in ("predicted", "reference"):
        names = [getattr(pair, side) for pair in pairs]
        assert len(set(names)) == len(names)


@given(states(), states())
def test_the_pairs_of_edges_add_up_to_the_chain_reward(predicted, reference):
    edges = len(predicted["update_edges"]) + len(reference["update_edges"])
    total = math.fsum(pair.weight for pair in edge_pairs(predicted, reference))
    if predicted["update_edges"] and reference["update_edges"]:
        assert chain_reward(predicted, reference) == 2 * total / edges
    else:
        assert total == 0


def test_by_hand():
    old, new = entry("a", "likes tea"), entry("b", "has a dog")
    predicted = {"entries": [new, old], "update_edges": [{"old": "a", "new": "b"}]}
    reference = {
        "entries": [entry("x", "likes tea"), entry("y", "has a dog"), entry("z", "likes tea", source="Bob")],
        "update_edges": [{"old": "x", "new": "y"}],
    }
    assert set(record_pairs(predicted, reference)) == {RecordPair("a", "x", 1.0), RecordPair("b", "y", 1.0)}
    assert edge_pairs(predicted, reference) == (EdgePair(("a", "b"), ("x", "y"), 1.0),)
