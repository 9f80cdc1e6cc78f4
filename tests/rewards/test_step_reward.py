import dataclasses
import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.conversation import Message, Segment
from memory_env.state import MemoryState
from memory_env.step import step
from rewards import RewardWeights, Scorer, score_step
from rewards.step_reward import ReturnError
from tests.rewards import plain
from tests.rewards.examples import entry, state, states

REPORT = {
    "json_valid": True,
    "attempted": 2,
    "schema_valid_actions": 1,
    "errors": ["owner: unknown member"],
    "too_many_actions": False,
    "hit_length_limit": True,
}
ACTIONS = [
    {"action": "ADD", "owner": "Alice", "source": "Alice", "layer": "per_speaker_core", "content": "Alice likes tea"},
    {"action": "ADD", "owner": "Zed", "source": "Alice", "layer": "per_speaker_core", "content": "Zed left"},
]


def test_a_worked_example():
    reference = state(entry("Alice likes tea"), entry("They meet", owner="GROUP"))
    reward = score_step(ACTIONS, REPORT, state(), state(entry("Alice likes tea")), reference)
    assert (reward.json, reward.schema, reward.dup, reward.stop) == (1.0, 0.5, 1.0, 1.0)
    assert reward.valid == pytest.approx(0.25 + 0.35 * 0.5 + 0.25 + 0.15)
    assert reward.owners == {"Alice": 1.0, "GROUP": 0.0}
    assert (reward.phi_macro, reward.phi_worst, reward.phi) == (0.5, 0.0, 0.80 * 0.5)
    assert reward.chain == 1.0
    assert reward.mem == pytest.approx(0.80 * 0.4 + 0.20 * 1.0)
    assert reward.penalty == pytest.approx(-0.25)
    assert reward.total() == pytest.approx(0.20 * reward.valid + 0.45 * reward.mem - 0.25)
    assert reward.total(0.5, 2, 5) == pytest.approx(reward.total() + 0.35 * 0.95**2 * 0.5)


@given(states(), states(), states())
def test_equals_the_plain_definition(pre, post, reference):
    assert _paper_terms(score_step(ACTIONS, REPORT, pre, post, reference)) == plain.step(
        ACTIONS, REPORT, pre, post, reference
    )


def perfect():
    memory = state(entry("Alice likes tea"))
    fine = REPORT | {"schema_valid_actions": 2, "errors": [], "hit_length_limit": False}
    return score_step(ACTIONS, fine, state(), memory, memory)


def test_the_best_return_is_one():
    assert perfect().total(1.0, 4, 5) == pytest.approx(1.0)
    assert perfect().total() == pytest.approx(0.65)


@given(st.floats(-1, 1), st.integers(1, 30), st.data())
def test_the_terminal_term_fades_towards_the_start(gain, length, data):
    position = data.draw(st.integers(0, length - 1))
    reward = perfect()
    term = reward.qa_term(gain, position, length)
    assert term == pytest.approx(0.35 * 0.95 ** (length - 1 - position) * gain)
    assert reward.total(gain, position, length) == reward.total() + term
    assert reward.qa_term(gain, length - 1, length) == 0.35 * gain


def test_without_gain_or_length_there_is_no_terminal_term():
    reward = perfect()
    assert reward.qa_term(None, 0, 5) == reward.qa_term(0.5, 0, None) == 0.0
    assert reward.total(None, 3, 5) == reward.total(0.5, 3) == reward.total()


@pytest.mark.parametrize("gain", [math.nan, math.inf, "0.5", True])
def test_a_gain_that_is_no_number_is_refused(gain):
    with pytest.raises(ReturnError, match="qa_gain"):
        perfect().total(gain, 0, 5)


@pytest.mark.parametrize(("position", "length"), [(5, 5), (-1, 5), (0, 0)])
def test_a_position_outside_the_trajectory_is_refused(position, length):
    with pytest.raises(ReturnError, match="position"):
        perfect().total(0.5, position, length)


def test_other_weights_are_used_throughout():
    weights = RewardWeights(valid=0.0, mem=1.0, qa=0.5, gamma=0.5, macro=1.0, worst=0.0, length_limit=0.0)
    reward = score_step(ACTIONS, REPORT, state(), state(entry("tea")), state(entry("tea")), Scorer(weights))
    assert reward.penalty == pytest.approx(-0.15)
    assert reward.total(1.0, 0, 2, weights) == pytest.approx(1.0 - 0.15 + 0.5 * 0.5)


def test_a_reward_travels_between_processes():
    assert pickle.loads(pickle.dumps(perfect())) == perfect()


def test_a_reward_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        perfect().mem = 0.0


def test_states_and_reports_of_the_environment_score_as_their_dicts_do():
    """A real position: the Writer adds, updates and errs; objects and their `to_dict` give the same reward."""
    messages = tuple(Message(name, text, ts="2026-01-01", turn_id=f"t{n}", session_id="s1", index=n)
                     for n, (name, text) in enumerate([("Alice", "I like tea"), ("Bob", "Friday it is")]))  # fmt: skip
    first, second = (Segment(position, "s1", "2026-01-01", messages) for position in (0, 1))
    first_actions = [ACTIONS[0] | {"utype": "fact"}]
    reference, _ = step(MemoryState.empty(), first, first_actions)
    before, _ = step(MemoryState.empty(), first, first_actions)
    cited = before.derived()[0].entry_id
    actions = [{"action": "UPDATE", "entry_id": cited, "content": "Alice likes coffee now"}, {"action": "NOOP"}, 7]
    after, report = step(before, second, actions)
    assert len(after.edges()) == 1
    objects = score_step(actions, report, before, after, reference)
    dicts = score_step(actions, report.to_dict(), before.to_dict(), after.to_dict(), reference.to_dict())
    assert objects == dicts
    assert _paper_terms(objects) == plain.step(
        actions, report.to_dict(), before.to_dict(), after.to_dict(), reference.to_dict()
    )
    assert objects.penalty == pytest.approx(-0.15)
    assert 0 < objects.phi < 1


def test_identical_steps_of_a_group_cost_one_comparison(monkeypatch):
    calls = []
    from rewards import similarity

    class Counting(similarity.SequenceMatcher):
        def ratio(self):
            calls.append((self.a, self.b))
            return super().ratio()

    monkeypatch.setattr(similarity, "SequenceMatcher", Counting)
    reference = state(entry("Alice likes tea and milk"), entry("They meet on Friday", owner="GROUP"))
    written = state(entry("Alice likes tea"), entry("They meet on Friday", owner="GROUP"))
    scorer = Scorer()
    rewards = [score_step(ACTIONS, REPORT, state(), written, reference, scorer) for _ in range(8)]
    assert len(set(map(repr, rewards))) == 1
    assert calls == [("alice likes tea", "alice likes tea and milk")]
    scorer.clear()
    assert score_step(ACTIONS, REPORT, state(), written, reference, scorer) == rewards[0]
    assert len(calls) == 2


def test_public_teacher_states_equal_the_plain_definition(shared_data):
    """Real memories (English and Italian), each against itself less some records, and against the others'."""
    files = sorted((shared_data / "speakermem_r1" / "teacher_final_states").glob("*.json"))
    memories = [json.loads(file.read_text("utf-8"))["final_state"] for file in files]
    assert len(memories) == 3
    scorer = Scorer()
    for memory in memories:
        assert score_step([], {}, None, memory, memory, scorer).mem == 1.0
        less = memory | {"entries": memory["entries"][2:] + memory["entries"][:1]}
        for written, reference in [(less, memory), (memory, less)] + [(memory, other) for other in memories]:
            values = dataclasses.asdict(score_step([], {}, None, written, reference, scorer))
            score, macro, worst, owners = plain.phi(written["entries"], reference["entries"])
            assert (values["phi"], values["phi_macro"], values["phi_worst"], values["owners"]) == (
                score, macro, worst, owners,
            )  # fmt: skip


def _paper_terms(reward):
    """The paper's terms; nobody added one of their own."""
    values = dataclasses.asdict(reward)
    assert values.pop("terms") == {}
    return values
