"""One loop writes every conversation: outputs in any form, asked for or stored, give the states that `step` gives."""

import pytest

from memory_env import MemoryState, Network, parse_completion, replay, step
from memory_env.datafile import DataError
from memory_env.replay import Completion, write
from tests.memory_env.chats import NOOP, add, output

TURNS = [{"turn": f"t{index}", "speaker": "Alice", "content": f"message {index}"} for index in range(4)]
CHAT = Network.from_dict(
    {
        "speakers": ["Alice"],
        "sessions": [{"session_id": "s0", "turns": TURNS[:3]}, {"session_id": "s1", "turns": TURNS[3:]}],
        "meta": {"network_id": "n"},
    }
)
MIXED = [add("likes tea"), {"action": "UPDATE", "entry_id": "none", "content": "x"}]


def stepped(outputs, **options):
    """The states by the definition: one `step` after the other."""
    state, states = MemoryState.empty(), []
    for segment, text in zip(CHAT.segments(), outputs, strict=True):
        state, _ = step(state, segment, text, **options)
        states.append(state)
    return states


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("texts", [(output(*MIXED), output(NOOP)), ("no JSON", output(add("a"))), (output(), '{"actions": 1}')])
def test_text_completion_and_action_list_replay_to_the_states_of_step(texts, strict):
    expected = stepped(texts, strict=strict)
    for outputs in (texts, [Completion(text) for text in texts]):
        steps = replay(CHAT, outputs, strict=strict)
        assert [made.post_state for made in steps] == expected
        assert [made.pre_state for made in steps] == [MemoryState.empty(), *expected[:-1]]
        assert [made.actions for made in steps] == [parse_completion(text).actions for text in texts]
        assert [made.output for made in steps] == list(outputs)
    if all(parse_completion(text).valid for text in texts):
        lists = [parse_completion(text).actions for text in texts]
        assert [made.post_state for made in replay(CHAT, lists, strict=strict)] == expected


def test_a_cut_output_says_so_in_its_report():
    steps = replay(CHAT, [Completion(output(NOOP), hit_length_limit=True), Completion(output(NOOP))])
    assert [made.report.hit_length_limit for made in steps] == [True, False]


def test_a_writer_is_asked_once_a_position_with_the_memory_so_far():
    asked = []

    def writer(state, segment):
        asked.append((len(state.heads()), segment.position))
        return [add(f"fact {segment.position}")]

    steps = write(CHAT.segments(), writer)
    assert asked == []  # nothing is asked before its turn
    next(steps)
    assert asked == [(0, 0)]
    assert [record.content for record in next(steps).post_state.heads()] == ["fact 0", "fact 1"]
    assert asked == [(0, 0), (1, 1)]


def test_writing_goes_on_from_a_given_memory():
    first, second = replay(CHAT, [[add("a")], [add("b")]])
    (again,) = write(CHAT.segments()[1:], lambda state, segment: [add("b")], start=first.post_state)
    assert again == second


@pytest.mark.parametrize("outputs", [[], ["x"], ["x"] * 3])
def test_another_number_of_outputs_is_refused_by_name(outputs):
    with pytest.raises(DataError, match=f"'n' has 2 writing positions, but {len(outputs)} are given"):
        replay(CHAT, outputs)
    assert len(replay(CHAT, ["x"] * 3, window=2)) == 3
