"""Memory metrics against hand-made memories and the corpus' teachers."""

from types import SimpleNamespace

import pytest

from memory_env import corpus
from memory_env.conversation import Question
from memory_env.corpus.conversations import conversation
from memory_env.state import MemoryState
from tests.memory_env.query.memories import CLUB, memory, record
from writer_rl.evaluation.memory_metrics import answer_stands, attribution_hits, memory_metrics, update_hits


def question(items, text="?", answer="", **fields):
    rubric = {"rubric": {"items": [{"who": who, "text": value} for who, value in items], "wrong": []}}
    return Question("q", "Q1", text, answer, extra=rubric, **fields)


@pytest.mark.parametrize(
    "items, expected",
    [
        ([("Alice", "figs")], True),
        ([("Bob", "figs")], False),  # another owner
        ([("Alice", "olives")], False),  # superseded
        ([("GROUP", "Monday"), ("GROUP", "harbor")], True),
        ([("GROUP", "Monday"), ("GROUP", "library")], False),
        ([("", "chess")], True),
    ],
)
def test_a_gold_value_stands_in_a_head_of_the_right_owner(items, expected):
    assert answer_stands(question(items), CLUB) is expected


def test_a_question_about_time_counts_every_version():
    assert answer_stands(question([("Alice", "olives")], temporal_anchors=({"turn_id": "t"},)), CLUB)


def test_a_person_as_the_answer_stands_in_a_record_the_gold_answer_repeats():
    asked = {"text": "Who said that Carol is good at chess?", "answer": "Bob said that Carol is good at chess."}
    assert answer_stands(question([("Bob", "")], **asked), CLUB)
    assert not answer_stands(question([("Zoe", "")], **asked), CLUB)


def test_without_a_rubric_the_gold_words_have_to_stand_in_one_record():
    assert answer_stands(Question("q", "Q1", "What is Alice's favourite snack?", "figs"), CLUB)
    assert not answer_stands(Question("q", "Q1", "What is Alice's favourite snack?", "dates"), CLUB)
    options = {"A": "figs", "B": "dates"}
    assert answer_stands(Question("q", "Q1", "What is Alice's snack?", "something long", options=options, correct_option="A"), CLUB)


def chain(old, new, owner="Bob", layer="per_speaker_core"):
    return memory(record(0, owner, old, layer=layer, new=1), record(1, owner, new, layer=layer, old=0))


@pytest.mark.parametrize(
    "written, expected",
    [
        (chain("lives in Oslo", "lives in Lima"), [True]),
        (chain("Lives in  Oslo", "lives in LIMA"), [True]),
        (chain("lives in Oslo", "lives in Rome"), [False]),  # another new value
        (chain("lives in Bonn", "lives in Lima"), [False]),  # another old value
        (chain("lives in Oslo", "lives in Lima", owner="Alice"), [False]),
        (chain("lives in Oslo", "lives in Lima", layer="per_speaker_profile"), [False]),
        (memory(record(0, "Bob", "lives in Oslo"), record(1, "Bob", "lives in Lima")), [False]),  # added, not updated
        (MemoryState.empty(), [False]),
    ],
)
def test_an_update_counts_when_its_old_and_new_both_match(written, expected):
    assert update_hits(written, chain("lives in Oslo", "lives in Lima")) == expected


def test_one_update_serves_one_update_of_the_reference():
    twice = memory(
        *(record(i, "Bob", "lives in Oslo", new=i + 10) for i in range(2)),
        *(record(i + 10, "Bob", "lives in Lima", old=i) for i in range(2)),
    )
    assert update_hits(chain("lives in Oslo", "lives in Lima"), twice) == [True, False]
    assert update_hits(twice, twice) == [True, True]


def test_attribution_is_judged_given_the_content():
    reference = memory(record(0, "Carol", "good at chess", source="Bob", layer="per_speaker_profile"))
    right = memory(record(5, "Carol", "Good at chess", source="Bob", layer="per_speaker_profile"))
    assert attribution_hits(right, reference) == [True]
    for changed in ({"source": "Alice"}, {"layer": "per_speaker_core"}):
        fields = {"source": "Bob", "layer": "per_speaker_profile"} | changed
        assert attribution_hits(memory(record(5, "Carol", "good at chess", **fields)), reference) == [False]
    assert attribution_hits(memory(record(5, "Carol", "likes tea")), reference) == []


def trajectory(network, taught):
    before = (MemoryState.empty(), *taught.states[:-1])
    steps = [
        SimpleNamespace(actions=actions, report=report, pre_state=pre, post_state=post)
        for actions, report, pre, post in zip(taught.actions, taught.reports, before, taught.states, strict=True)
    ]
    return SimpleNamespace(network_id=network.network_id, steps=steps)


def test_the_teacher_is_perfect_and_an_under_writing_one_is_not():
    networks = corpus.heldout_networks()[:3]
    references = {network.network_id: corpus.teacher(network) for network in networks}
    questions = {network.network_id: network.questions for network in networks}
    talks = [conversation(network.network_id) for network in networks]
    perfect = memory_metrics([trajectory(t.network, t.taught) for t in talks], references, questions)
    for name in ("valid", "phi", "chain", "mem", "question_score", "update_accuracy", "attribution_accuracy"):
        assert perfect[name] == 1.0, name
    assert perfect["total"] == pytest.approx(0.65) and perfect["questions"] == sum(len(n.questions) for n in networks)
    biased = memory_metrics([trajectory(t.network, t.biased(0)) for t in talks], references, questions)
    for name in ("phi", "mem", "question_score", "total"):
        assert biased[name] < perfect[name], name
    assert biased["valid"] == 1.0 and biased["records"] < perfect["records"]


def test_means_over_nothing_are_left_out():
    assert memory_metrics([], {}, {}) == {"steps": 0, "questions": 0, "reference_updates": 0, "matched_contents": 0, "records": 0}
