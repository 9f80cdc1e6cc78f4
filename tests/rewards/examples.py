"""Small memories to score: by hand and drawn by hypothesis."""

from hypothesis import strategies as st

OWNERS = ("Alice", "Bob", "李雷", "GROUP")
SOURCES = ("Alice", "Bob")
LAYERS = ("per_speaker_core", "group_insight")
WORDS = ("tea", "coffee", "likes", "Friday", "the", "moved", "2026", "喜欢", "茶", "café", "Зоя", "!")


def entry(content, owner="Alice", source="Alice", layer="per_speaker_core", entry_id="", superseded_by=""):
    return {
        "entry_id": entry_id or content,
        "content": content,
        "owner": owner,
        "source": source,
        "layer": layer,
        "superseded_by": superseded_by,
    }


def state(*entries, edges=()):
    return {"entries": list(entries), "update_edges": [{"old": old, "new": new} for old, new in edges]}


contents = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


@st.composite
def memories(draw, most=8):
    """A list of entries with ids of their own; few coordinates and few words, so that many pairs compete."""
    drawn = draw(
        st.lists(
            st.tuples(contents, st.sampled_from(OWNERS), st.sampled_from(SOURCES), st.sampled_from(LAYERS)),
            max_size=most,
        )
    )
    return [entry(*fields, entry_id=f"d{place}") for place, fields in enumerate(drawn)]


@st.composite
def states(draw, most=8):
    """A state whose edges lead from an entry to a later one of the same coordinates, as UPDATE makes them."""
    entries = draw(memories(most))
    edges = []
    for place, new in enumerate(entries):
        if place and draw(st.booleans()):
            old = draw(st.sampled_from(entries[:place]))
            if not old["superseded_by"]:
                new |= {key: old[key] for key in ("owner", "source", "layer")}
                old["superseded_by"] = new["entry_id"]
                edges.append({"old": old["entry_id"], "new": new["entry_id"]})
    return {"entries": entries, "update_edges": edges}
