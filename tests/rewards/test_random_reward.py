"""A control's reward: fair, the same when computed again, and blind."""

from statistics import fmean

from memory_env import MemoryState, step
from rewards.random_reward import random_reward
from tests.memory_env.chats import add, output, segment


def draw(actions, state=None):
    return random_reward(actions, None, state or MemoryState.empty(), None, None)


def test_it_is_uniform_repeatable_and_sees_nothing_but_actions_and_memory():
    values = [draw([add(f"fact {n}")]) for n in range(2000)]
    assert all(0 <= value < 1 for value in values) and abs(fmean(values) - 0.5) < 0.03
    assert abs(fmean(value**2 for value in values) - 1 / 3) < 0.03 and len(set(values)) == 2000
    assert draw([add("x")]) == draw([add("x")]) != draw([add("y")])
    later = step(MemoryState.empty(), segment(0, "hi"), output(add("x")))[0]
    assert draw([add("x")], later) != draw([add("x")]) and random_reward([add("x")], 1, MemoryState.empty(), 2, 3) == draw([add("x")])
