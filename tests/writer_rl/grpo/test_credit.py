"""Credit by choice: each by hand, and against a definition that loops over everything."""

from dataclasses import replace
from statistics import fmean, pstdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env import MemoryState, step
from rewards import RewardWeights
from rewards.step_reward import StepReward
from tests.memory_env.chats import add, output, segment
from writer_rl.grpo.advantages import position_advantages
from writer_rl.grpo.credit import compare, memory_gains, memory_key, returns_of
from writer_rl.grpo.groups import share_of_rank

ONLY_MEMORY = RewardWeights(valid=0.0, mem=1.0, qa=1.0, gamma=0.5)
ZERO = StepReward(0.0, 0.0, 0.0, 0.0, 0.0, {}, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def rewards(rows):
    return [[replace(ZERO, mem=value) for value in row] for row in rows]


def test_aligned_is_the_papers():
    rows, gains = [[0.2, 0.4], [0.6, 0.4]], [0.0, 1.0]
    found = compare("aligned", rewards(rows), gains, ONLY_MEMORY)
    assert found.values.tolist() == [[0.2, 0.4], [1.1, 1.4]]  # the gain of the second, halved at the first position
    assert (found.advantages == position_advantages(found.values)).all()
    assert found.advantages.tolist()[0] == pytest.approx([-1.0, -1.0])


def test_difference_by_hand():
    # R_mem 0.5, 0.75 and 0.5, 0.5: at the second position only the gains 0.25 and 0 are compared
    found = compare("difference", rewards([[0.5, 0.75], [0.5, 0.5]]), [0.0, 0.0], ONLY_MEMORY)
    assert found.values.tolist() == [[0.5, 0.25], [0.5, 0.0]]
    assert found.advantages.tolist() == [[0.0, 1.0], [0.0, -1.0]]
    assert [r.mem for r in memory_gains(rewards([[0.5, 0.75, 0.5]])[0])] == [0.5, 0.25, -0.25]


def test_what_was_inherited_earns_nothing():
    """A lead from the first position is credited once; aligned credits it at every position."""
    rows = [[0.8, 0.8, 0.8], [0.4, 0.4, 0.4]]
    assert compare("aligned", rewards(rows), [0, 0], ONLY_MEMORY).advantages.tolist()[0] == pytest.approx([1.0, 1.0, 1.0])
    assert compare("difference", rewards(rows), [0, 0], ONLY_MEMORY).advantages.tolist()[0] == pytest.approx([1.0, 0.0, 0.0])


def test_anchor_compares_what_was_written_from_equal_memories():
    rows = [[0.1, 0.5], [0.3, 0.5], [0.3, 0.9], [0.3, 0.1]]
    memories = [["", "a"], ["", "b"], ["", "b"], ["", "c"]]
    found = compare("anchor", rewards(rows), [0] * 4, ONLY_MEMORY, memories)
    assert (found.advantages[:, 0] == position_advantages(np.array(rows))[:, 0]).all()
    assert found.advantages[:, 1].tolist() == pytest.approx([0.0, -1.0, 1.0, 0.0]) and found.deviations[0, 1] == 0.0
    with pytest.raises(ValueError, match="anchor"):
        compare("anchor", rewards(rows), [0] * 4, ONLY_MEMORY)


@st.composite
def groups(draw):
    g, t = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    values = st.floats(0, 1, width=32)
    return (
        draw(st.lists(st.lists(values, min_size=t, max_size=t), min_size=g, max_size=g)),
        draw(st.lists(st.floats(-1, 1, width=32), min_size=g, max_size=g)),
        draw(st.lists(st.lists(st.sampled_from("ab"), min_size=t, max_size=t), min_size=g, max_size=g)),
    )


def slow(kind, rows, gains, memories):
    """The definitions, one completion at a time."""
    size, length = len(rows), len(rows[0])

    def r(g, t):
        before = rows[g][t - 1] if kind == "difference" and t else 0.0
        return rows[g][t] - before + 0.5 ** (length - 1 - t) * gains[g]

    def value(g, t):
        return fmean(r(g, i) for i in range(length)) if kind == "trajectory" else r(g, t)

    found = np.zeros((size, length))
    for g in range(size):
        for t in range(length):
            among = [value(i, t) for i in range(size) if kind != "anchor" or memories[i][t] == memories[g][t]]
            sigma = pstdev(among)
            if abs(sigma - 0.02) < 1e-6:
                return None
            found[g, t] = 0.0 if sigma < 0.02 else max(-3.0, min(3.0, (value(g, t) - fmean(among)) / sigma))
    return found


@pytest.mark.parametrize("kind", ["aligned", "trajectory", "difference", "local", "anchor"])
@given(groups())
def test_every_credit_is_its_definition(kind, group):
    rows, gains, memories = group
    expected = slow(kind, rows, gains, memories)
    if expected is not None:
        found = compare(kind, rewards(rows), gains, ONLY_MEMORY, memories)
        assert np.allclose(found.advantages, expected, atol=1e-6)
        assert found.advantages.shape == found.means.shape == found.deviations.shape == found.values.shape
        if kind in ("aligned", "local", "anchor"):
            assert (found.values == returns_of(rewards(rows), gains, ONLY_MEMORY)).all()


def test_memories_have_one_key_iff_they_are_equal():
    def after(said, *actions):
        return step(MemoryState.empty(), segment(0, said), output(*actions))[0]

    first, again = (after("I moved to Oslo", add("Alice lives in Oslo")) for _ in range(2))
    other, words = after("I moved to Oslo", add("Alice lives in Rome")), after("I moved to Rome", add("Alice lives in Oslo"))
    assert memory_key(first) == memory_key(again)
    assert len({memory_key(state) for state in (MemoryState.empty(), first, other, words)}) == 4


def test_whole_networks_stay_on_one_rank():
    assert [share_of_rank(("a", "b", "c"), 8, rank, 2, whole=True) for rank in (0, 1)] == [
        {"a": range(8), "c": range(8)}, {"b": range(8)},
    ]  # fmt: skip
    assert share_of_rank(("a",), 8, 1, 2, whole=True) == {}
