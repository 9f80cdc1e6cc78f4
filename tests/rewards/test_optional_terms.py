"""Coverage, dissent across layers, and a budget by worth: by hand, and as terms of a step."""

from collections import Counter

import pytest

from memory_env import MemoryState, parse_completion, step
from rewards.coverage import coverage, coverage_term
from rewards.cross_layer import dissent_kept, opposed
from rewards.scorer import Scorer
from rewards.step_reward import score_step
from rewards.terms import weighted_terms
from rewards.worth import worth
from tests.memory_env.chats import add, output, segment


def test_coverage_by_hand():
    assert coverage(["Ann", "Ann", "GROUP"], ["Ann", "Bob", "Cleo"]) == pytest.approx(1 / 3)
    assert coverage([], []) == 1.0 and coverage([], ["Ann"]) == 0.0


def test_opposed_is_of_one_thing_and_one_negation():
    bob = frozenset({"bob"})
    assert opposed("the trip goes to Rome", "Bob does not want the trip to Rome", bob)
    assert not opposed("the trip goes to Rome", "Bob wants the trip to Rome", bob)
    assert not opposed("no trip to Rome", "Bob does not want the trip to Rome", bob), "both are against"
    assert not opposed("the trip goes to Rome", "Bob does not eat meat", bob)
    assert not opposed("", "not", bob)


def test_dissent_by_hand():
    stance = ("Bob", "meet on Monday, never")
    assert dissent_kept(["they meet on Monday", "no dogs at the camp"], [stance]) == 0.5
    assert dissent_kept(["they meet on Monday, Bob stays away"], [stance]) == 1.0
    assert dissent_kept([], [stance]) == 1.0


def test_worth_by_hand():
    assert worth(Counter(Ann=4, Bob=1), Counter(Ann=2, Bob=2)) == 0.5
    assert worth(Counter(), Counter()) == 1.0 and worth(Counter(Ann=3), Counter()) == 0.0


def test_they_enter_the_return_with_their_weights_and_are_off_without():
    before, piece = MemoryState.empty(), segment(0, "hi")
    completion = parse_completion(output(add("likes tea")))
    after, report = step(before, piece, completion)
    terms = weighted_terms(
        {"coverage": 0.1, "cross_layer": 0.2, "worth": 0.3}, ["rewards.coverage", "rewards.cross_layer", "rewards.worth"]
    )
    scored = score_step(completion.actions, report, before, after, after, Scorer(terms=terms))
    plain = score_step(completion.actions, report, before, after, after)
    share = coverage_term([], None, before, after, None)
    assert share > 0
    assert scored.terms == pytest.approx({"coverage": 0.1 * share, "cross_layer": 0.2, "worth": 0.3})
    assert scored.total() == pytest.approx(plain.total() + 0.5 + 0.1 * share) and plain.terms == {}
