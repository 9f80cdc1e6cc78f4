import dataclasses
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_env.records import Record
from rewards import RewardWeights, Scorer, speaker_levenshtein
from rewards.tokens import unicode_tokens
from tests.rewards import plain
from tests.rewards.examples import OWNERS, SOURCES, entry, memories


def as_tuple(match):
    return match.score, match.macro, match.worst, match.owners


def test_a_worked_example():
    reference = [
        entry("Alice owns the release"),
        entry("Alice likes tea"),
        entry("The team meets on Friday", owner="GROUP", layer="group_interaction"),
    ]
    predicted = [
        entry("alice owns the RELEASE."),
        entry("The team meets on Friday", owner="GROUP", layer="group_interaction"),
        entry("Bob is tired", owner="Bob", source="Bob"),
    ]
    match = speaker_levenshtein(predicted, reference)
    assert match.owners == {"Alice": 2 * 1.0 / 3, "Bob": 0.0, "GROUP": 1.0}
    assert match.macro == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert match.worst == 0.0
    assert match.score == pytest.approx(0.80 * match.macro + 0.20 * 0.0)


@given(memories(), memories())
def test_equals_the_plain_definition(predicted, reference):
    assert as_tuple(speaker_levenshtein(predicted, reference)) == plain.phi(predicted, reference)
    unicode = Scorer(tokenizer="unicode")
    assert as_tuple(speaker_levenshtein(predicted, reference, unicode)) == plain.phi(predicted, reference, unicode_tokens)


@settings(max_examples=50)
@given(st.lists(memories(), min_size=2, max_size=5), memories())
def test_a_shared_scorer_never_changes_a_value(group, reference):
    scorer = Scorer()
    for predicted in group + group:
        assert as_tuple(speaker_levenshtein(predicted, reference, scorer)) == plain.phi(predicted, reference)


@given(memories(), memories(), st.randoms(use_true_random=False))
def test_the_order_of_the_entries_does_not_matter(predicted, reference, dice):
    shuffled = dice.sample(predicted, len(predicted)), dice.sample(reference, len(reference))
    assert speaker_levenshtein(*shuffled) == speaker_levenshtein(predicted, reference)


def test_the_order_does_not_matter_where_two_matchings_are_the_best_but_for_rounding():
    predicted = [entry(text) for text in ("c a bd", "c a a bd", "c a c bd")]
    reference = [entry(text) for text in ("c a c e", "c a c c", "ab e c")]
    assert {
        speaker_levenshtein(p, r).score for p in itertools.permutations(predicted) for r in itertools.permutations(reference)
    } == {plain.phi(predicted, reference)[0]}


@given(memories(), memories(), st.permutations(OWNERS))
def test_renaming_the_owners_on_both_sides_does_not_matter(predicted, reference, names):
    new = dict(zip(OWNERS, names, strict=True))

    def renamed(entries):
        return [e | {"owner": new[e["owner"]]} for e in entries]

    before, after = (
        speaker_levenshtein(predicted, reference),
        speaker_levenshtein(renamed(predicted), renamed(reference)),
    )
    assert (after.score, after.macro, after.worst) == (before.score, before.macro, before.worst)
    assert after.owners == {new[owner]: value for owner, value in before.owners.items()}


@given(memories(), memories())
def test_renaming_the_sources_on_both_sides_does_not_matter(predicted, reference):
    swap = dict(zip(SOURCES, reversed(SOURCES), strict=True))
    renamed = [[e | {"source": swap[e["source"]]} for e in side] for side in (predicted, reference)]
    assert speaker_levenshtein(*renamed).score == pytest.approx(speaker_levenshtein(predicted, reference).score, abs=1e-12)


@given(memories(), memories())
def test_everything_lies_between_0_and_1_and_the_worst_is_the_least(predicted, reference):
    match = speaker_levenshtein(predicted, reference)
    assert all(0.0 <= value <= 1.0 for value in (match.score, match.macro, match.worst, *match.owners.values()))
    assert match.worst <= match.macro
    assert set(match.owners) == {e["owner"] for e in predicted + reference}


@given(memories())
def test_identical_memories_with_content_score_exactly_one(entries):
    entries = [e | {"content": e["content"] + " tea"} for e in entries]
    assert speaker_levenshtein(entries, [dict(e) for e in entries]).score == 1.0


def test_both_sides_empty_is_one_and_one_side_empty_is_zero():
    assert as_tuple(speaker_levenshtein([], [])) == (1.0, 1.0, 1.0, {})
    assert speaker_levenshtein([], [entry("tea")]).score == 0.0
    assert speaker_levenshtein([entry("tea")], []).score == 0.0


@given(memories(), memories(), st.sampled_from(OWNERS + ("Zed",)), st.booleans())
def test_a_record_that_matches_nothing_never_helps(predicted, reference, owner, wrong_source):
    """A true record under the wrong owner, or with the wrong source, is one."""
    stray = entry("tea Friday moved", owner=owner, source="nobody") if wrong_source else entry("zzz qqq", owner=owner)
    before = speaker_levenshtein(predicted, reference)
    after = speaker_levenshtein(predicted + [stray], reference)
    assert after.score <= before.score
    assert all(after.owners[name] <= value for name, value in before.owners.items())


@settings(max_examples=50)
@given(memories(), memories().filter(bool), st.data())
def test_a_reference_record_under_another_owner_never_helps(predicted, reference, data):
    true = data.draw(st.sampled_from(reference))
    stray = true | {"owner": "Zed"}
    assert speaker_levenshtein(predicted + [stray], reference).score <= speaker_levenshtein(predicted, reference).score


@given(memories(), memories(), memories(), st.sampled_from(OWNERS))
def test_an_owner_is_scored_by_its_own_records_alone(predicted, reference, others, owner):
    """So a GROUP record can't offset what is missing about a person, nor the other way round."""
    others = [e for e in others if e["owner"] != owner]
    alone = [[e for e in side if e["owner"] == owner] for side in (predicted, reference)]
    among = speaker_levenshtein(alone[0] + others, alone[1])
    assert among.owners.get(owner) == speaker_levenshtein(*alone).owners.get(owner)


def test_a_group_record_with_a_persons_words_does_not_count_for_the_person():
    reference = [entry("Alice likes tea"), entry("The team meets on Friday", owner="GROUP")]
    predicted = [entry("Alice likes tea", owner="GROUP"), entry("The team meets on Friday", owner="GROUP")]
    assert speaker_levenshtein(predicted, reference).owners == {"Alice": 0.0, "GROUP": 2 * 1.0 / 3}


@pytest.mark.parametrize("coordinate", ["owner", "source", "layer"])
def test_every_coordinate_must_be_equal(coordinate):
    true = entry("Alice likes tea")
    assert speaker_levenshtein([true | {coordinate: "other"}], [true]).score == 0.0


def test_a_pair_below_the_threshold_does_not_count_and_one_at_it_does():
    predicted, reference = [entry("a ab")], [entry("a aab")]
    value = plain.similarity("a ab", "a aab")
    for threshold, expected in ((value, value), (0.999999 * value, value), (1.000001 * value, 0.0)):
        match = speaker_levenshtein(predicted, reference, Scorer(RewardWeights(threshold=threshold)))
        assert match.owners == {"Alice": expected}


def test_superseded_records_count_and_verbatim_ones_do_not():
    old, new = entry("Alice likes tea", superseded_by="d2"), entry("Alice likes coffee now")
    assert speaker_levenshtein([new], [old, new]).owners == {"Alice": 2 * 1.0 / 3}
    said = entry("I like tea", layer="per_speaker_episodic")
    assert speaker_levenshtein([new, said], [new]).score == 1.0


@pytest.mark.parametrize(
    ("tokenizer", "text", "score"),
    [
        ("paper", "李雷喜欢茶", 1.0),
        ("paper", "preferisce il caffè", 1.0),
        ("paper", "Зоя любит чай", 0.0),
        ("unicode", "李雷喜欢茶", 1.0),
        ("unicode", "preferisce il caffè", 1.0),
        ("unicode", "Зоя любит чай", 1.0),
        ("unicode", "お茶が好き", 1.0),
    ],
)
def test_scripts_under_both_tokenizers(tokenizer, text, score):
    assert speaker_levenshtein([entry(text)], [entry(text)], Scorer(tokenizer=tokenizer)).score == score


@given(memories(), memories())
def test_records_and_dicts_score_the_same(predicted, reference):
    as_records = [tuple(Record.from_dict(e) for e in side) for side in (predicted, reference)]
    assert speaker_levenshtein(*as_records) == speaker_levenshtein(predicted, reference)
    assert speaker_levenshtein(as_records[0], reference) == speaker_levenshtein(predicted, reference)
    assert speaker_levenshtein({"entries": predicted}, reference) == speaker_levenshtein(predicted, reference)


def test_missing_fields_are_empty():
    assert speaker_levenshtein([{"content": "tea"}], [{"content": "tea", "owner": "", "source": None}]).score == 1.0
    assert speaker_levenshtein([{}], [{}]).owners == {"": 0.0}  # no content, nothing to agree on
    assert speaker_levenshtein([{"owner": 7, "content": 7}], [{"owner": "7", "content": "7"}]).owners == {"7": 1.0}
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert speaker_levenshtein([{"content": deep}], [{"content": "tea"}]).score == 0.0


def test_the_result_is_frozen_and_its_owners_belong_to_the_caller():
    scorer = Scorer()
    first = speaker_levenshtein([entry("tea")], [entry("tea")], scorer)
    first.owners["Alice"] = 0.0
    assert speaker_levenshtein([entry("tea")], [entry("tea")], scorer).owners == {"Alice": 1.0}
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.score = 0.0


def test_identical_buckets_of_a_group_are_matched_once(monkeypatch):
    calls = []

    def counting(*arguments, **keywords):
        calls.append(arguments)
        return original(*arguments, **keywords)

    from rewards import speaker

    original = speaker.soft_f1
    monkeypatch.setattr(speaker, "soft_f1", counting)
    dice, scorer = random.Random(0), Scorer()
    reference = [entry("Alice likes tea"), entry("Bob left", owner="Bob"), entry("They meet", owner="GROUP")]
    reference += [entry(f"Alice owns bike {number}") for number in range(4)]
    for _ in range(8):
        speaker_levenshtein(dice.sample(reference, len(reference)), reference, scorer)
    assert len(calls) == 3
    speaker_levenshtein([e for e in reference if e["owner"] != "GROUP"], reference, scorer)
    assert len(calls) == 3  # Alice and Bob are known, GROUP has no prediction
