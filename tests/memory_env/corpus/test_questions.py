"""The questions: every one can be answered from the reference memory, and only from what is true."""

from collections import Counter

import pytest

from memory_env.corpus import generate_sft
from memory_env.corpus.conversations import from_recipe
from memory_env.corpus.facts_in_force import says
from memory_env.corpus.questions import CATEGORIES
from memory_env.corpus.sets import HELDOUT, TRAIN
from memory_env.query.answer.offline_answer import OfflineAnswerer
from memory_env.query.answer.offline_judge import OfflineJudge
from memory_env.query.budgets import QueryBudgets
from memory_env.query.pipeline import QueryPipeline

FROZEN = [from_recipe(recipe) for recipe in TRAIN + HELDOUT]
SAMPLE = FROZEN + [generate_sft(seed, level) for level in (0, 1, 2) for seed in range(60)]
ASKED = [(chat, question) for chat in SAMPLE for question in chat.network.questions]


def _records(state, who, chains):
    """The texts about `who` as they stand, with what they were before where `chains`."""
    heads = state.heads(who)
    return [r.content for h in heads for r in (state.chain(h.entry_id) if chains else [h])]


def test_every_item_is_in_a_record_of_the_right_owner():
    for chat, question in ASKED:
        state = chat.taught.states[-1]
        for item in question.extra["rubric"]["items"]:
            if item["text"] == "nothing":
                assert not state.derived()
            elif item["text"]:
                texts = _records(state, item["who"], chains=question.category == "Q8")
                assert any(says(text, item["text"]) for text in texts), (question.question, item)
            else:  # the person is the answer: owner, source, or named in the group's record
                assert any(item["who"] in (r.owner, r.source) or says(r.content, item["who"]) for r in state.heads())


def test_no_wrong_item_is_true():
    for chat, question in ASKED:
        rubric = question.extra["rubric"]
        pairs = {(i["who"], i["text"]) for i in rubric["items"]}
        for wrong in rubric["wrong"]:
            assert (wrong["who"], wrong["text"]) not in pairs
            if wrong["text"] and question.category != "Q8":
                assert not any(says(text, wrong["text"]) for text in _records(chat.taught.states[-1], wrong["who"], chains=False))


def test_what_was_before_is_not_what_is_now():
    found = 0
    for chat, question in ASKED:
        if question.category == "Q8" and " before " in question.question:
            found += 1
            state = chat.taught.states[-1]
            for item in question.extra["rubric"]["items"]:
                old = [
                    t for t in _records(state, item["who"], chains=True) if t not in _records(state, item["who"], chains=False)
                ]
                assert any(says(text, item["text"]) for text in old)
            assert question.extra["rubric"]["wrong"]
    assert found > 20


def test_every_member_with_a_stance_is_asked_for_and_no_other():
    found = 0
    for chat, question in ASKED:
        items = question.extra["rubric"]["items"]
        if question.category == "Q3" and len(items) > 1:
            found += 1
            topic = items[0]["text"].split(maxsplit=1)[1]
            holders = {r.owner for r in chat.taught.states[-1].heads() if r.utype == "stance" and r.content.endswith(topic)}
            assert {item["who"] for item in items} == holders
    assert found > 20


def test_the_right_option_is_the_answer_and_the_others_are_not():
    found = 0
    for chat, question in ASKED:
        if not question.options:
            assert question.answer_format == "long_form" and not question.correct_option
            continue
        found += 1
        right = question.options[question.correct_option]
        item = question.extra["rubric"]["items"][0]
        assert right == (item["text"] or item["who"])
        assert sorted(question.options) == list("ABCD") and len(set(question.options.values())) == 4
        if item["text"]:
            others = [text for text in question.options.values() if text != right]
            texts = _records(chat.taught.states[-1], item["who"], chains=False)
            about = [text for text in texts if says(text, right)]
            assert not any(says(text, other) for text in about for other in others)
    letters = Counter(q.correct_option for _, q in ASKED if q.options)
    assert found > 80 and min(letters.values()) > found / 8


def test_anchors_are_real_turns():
    for chat, question in ASKED:
        turns = {turn.turn_id: (session.session_index, turn) for session in chat.network.sessions for turn in session.turns}
        for anchor in question.evidence_anchors:
            index, turn = turns[anchor["turn_id"]]
            assert (anchor["session_index"], anchor["speaker_display_name"], anchor["message_excerpt"]) == (
                index,
                turn.speaker,
                turn.content,
            )
            position = chat.plan.positions[index - 1]
            event = next(e for e in position.events if e.message == turn.index)
            assert anchor["relevance"].endswith(event.content)
        assert question.evidence_anchors or not chat.plan.facts
        assert {a["turn_id"] for a in question.temporal_anchors} <= set(turns)
        assert bool(question.temporal_anchors) == (question.category == "Q8")


def test_no_question_is_asked_twice():
    for chat in SAMPLE:
        asked = [q.question for q in chat.network.questions]
        assert len(set(asked)) == len(asked)
        assert len({q.id for q in chat.network.questions}) == len(asked)


@pytest.mark.parametrize("recipes", [TRAIN, HELDOUT], ids=["train", "heldout"])
def test_both_frozen_sets_ask_in_all_nine_categories(recipes):
    names = {recipe.name for recipe in recipes}
    counts = Counter(q.category for chat in FROZEN if chat.network.network_id in names for q in chat.network.questions)
    assert set(counts) == set(CATEGORIES) == {f"Q{i}" for i in range(1, 10)}
    assert min(counts.values()) >= 5 and max(counts.values()) < 0.3 * sum(counts.values())


def _correct(chats, state_of, verbatim_only=False):
    """Percentage right with the offline answerer and judge at the default budgets."""
    pipeline, answerer, judge = QueryPipeline(QueryBudgets()), OfflineAnswerer(), OfflineJudge()
    verdicts = []
    for chat in chats:
        index = pipeline.index(state_of(chat))
        for question in chat.network.questions:
            evidence = pipeline.evidence(question.question, index)
            evidence = evidence.verbatim_only() if verbatim_only else evidence
            verdicts.append(judge.judge(question, answerer.answer(question, evidence)).correct)
    return 100 * sum(verdicts) / len(verdicts)


def test_the_questions_need_a_memory():
    """Messages alone answer few questions, the teacher's memory nearly all, the under-writing teacher's some in between."""
    heldout = [chat for chat in FROZEN if chat.network.network_id.startswith("heldout")]
    complete = _correct(heldout, lambda chat: chat.taught.states[-1])
    alone = _correct(heldout, lambda chat: chat.taught.states[-1], verbatim_only=True)
    biased = _correct(heldout, lambda chat: chat.biased(1).states[-1])
    assert complete >= 90
    assert alone <= complete - 15
    assert alone + 10 <= biased <= complete - 10
