"""The generated conversations: reproducible, well-formed, and remembered exactly as planned."""

import hashlib
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_env import MemoryState, load_trajectory, step
from memory_env.corpus import BiasRates, conversation, generate_sft, generate_validation, vocabulary
from memory_env.corpus.facts_in_force import InForce
from memory_env.corpus.frozen import network_bytes, trajectory_bytes
from memory_env.corpus.vocabulary import words_of
from memory_env.datafile import DataError

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = [generate_sft(seed, level) for level in (0, 1, 2) for seed in range(40)]
GOLDEN = "f6fddde41d69c12ef65ff2935ce79aa2fd3c64a7cc0eeacae9b50df7b4770a73"


def test_the_bytes_never_change():
    """A committed checkpoint fits this corpus only; whoever changes a wording has to mean it."""
    digest = hashlib.sha256()
    for chat in SAMPLE[::10]:
        digest.update(network_bytes(chat) + trajectory_bytes(chat))
    assert digest.hexdigest() == GOLDEN


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_another_process_with_another_hash_seed_makes_the_same_bytes(hash_seed):
    code = (
        "import sys; from memory_env.corpus.frozen import *; c = generate_sft(5, 2);"
        "sys.stdout.buffer.write(network_bytes(c) + trajectory_bytes(c))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    other = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=True).stdout
    here = generate_sft(5, 2)
    assert other == network_bytes(here) + trajectory_bytes(here)


@given(st.integers(0, 9_999_999), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_the_memory_of_the_teacher_is_the_plan(seed, level):
    chat = generate_sft(seed, level)
    state = chat.taught.states[-1]
    heads = {(r.owner, r.source, r.layer, r.utype, r.content) for r in state.heads()}
    assert heads == {(f.owner, f.source, f.layer, f.utype, f.content) for f in InForce(chat.plan).facts}
    edges = {(state.get(e.old).content, state.get(e.new).content) for e in state.edges()}
    histories = [chat.plan.history(i) for i in range(len(chat.plan.facts))]
    assert edges == {(a.content, b.content) for history in histories for a, b in pairwise(history)}


@pytest.mark.parametrize("chat", SAMPLE[::7], ids=lambda chat: chat.network.network_id)
def test_actions_follow_message_order_and_replay_without_errors(chat):
    state = MemoryState.empty()
    for segment, position, actions in zip(chat.network.segments(), chat.plan.positions, chat.taught.actions, strict=True):
        assert [e.message for e in position.events] == sorted({e.message for e in position.events})
        assert actions == [{"action": "NOOP"}] if not position.events else len(actions) == len(position.events)
        state, report = step(state, segment, actions)
        assert not report.errors and not report.too_many_actions
    assert state.to_dict() == chat.taught.states[-1].to_dict()


def test_every_word_is_in_the_vocabulary():
    known = set(vocabulary(questions=True))
    for chat in SAMPLE:
        said = [m.content for m in chat.network.messages] + [r.content for r in chat.taught.states[-1].derived()]
        asked = [q.question for q in chat.network.questions]
        assert not {word for text in said + asked for word in words_of(text)} - known
    said = {word for chat in SAMPLE for m in chat.network.messages for word in words_of(m.content)}
    assert said <= set(vocabulary())


def test_messages_and_records_are_short():
    for chat in SAMPLE:
        assert all(4 <= len(m.content.split()) <= 14 for m in chat.network.messages)
        assert all(3 <= len(r.content.split()) <= 9 for r in chat.taught.states[-1].derived())


def test_prompts_stay_small():
    """Words of a segment plus those of all heads before it: what the tiny Writer has to read (ids and names come on top)."""
    for chat in [conversation(f"heldout_{i:02d}") for i in range(1, 11)] + SAMPLE:
        before = MemoryState.empty()
        for segment, state in zip(chat.network.segments(), chat.taught.states, strict=True):
            words = sum(len(words_of(m.content)) for m in segment.messages) + sum(
                len(words_of(r.content)) for r in before.heads()
            )
            assert words <= 300
            before = state


def test_one_wording_has_one_meaning():
    """With values and names masked, a message of one family never reads like one of another: no Writer could tell them apart."""
    from memory_env.corpus import lexicon

    values = {v for pool in lexicon.VALUES.values() for v in pool} | {
        *lexicon.NAMES,
        *lexicon.SPOTS,
        *lexicon.DAYS,
        *lexicon.EVENTS,
        *lexicon.TOPICS,
    }
    masked = re.compile(rf"\b({'|'.join(sorted(values, key=len, reverse=True))})\b")
    meanings: dict[str, set[tuple[str, str]]] = {}
    for chat in (generate_sft(seed, 2) for seed in range(300)):
        for position in chat.plan.positions:
            events = {e.message: e for e in position.events}
            for i, utterance in enumerate(position.messages):
                event = events.get(i)
                meaning = (event.operation, chat.plan.facts[event.fact].kind) if event else ("NOOP", "")
                meanings.setdefault(masked.sub("_", utterance.content), set()).add(meaning)
    assert {text: found for text, found in meanings.items() if len(found) > 1} == {}


def test_nobody_owns_a_record_before_having_spoken():
    for chat in SAMPLE:
        heard: set[str] = set()
        for position in chat.plan.positions:
            heard |= {u.speaker for u in position.messages}
            assert {m for e in position.events for m in chat.plan.facts[e.fact].members} <= heard


def test_members_who_join_late_or_leave_speak_only_while_they_are_there():
    seen = {"join": 0, "leave": 0}
    for chat in SAMPLE:
        for t, position in enumerate(chat.plan.positions):
            for event in position.events:
                fact = chat.plan.facts[event.fact]
                speakers = [[u.speaker for u in p.messages] for p in chat.plan.positions]
                if fact.kind == "join":
                    seen["join"] += 1
                    assert fact.owner not in sum(speakers[:t], []) and speakers[t][0] == fact.owner
                if fact.kind == "leave":
                    seen["leave"] += 1
                    assert fact.owner not in sum(speakers[t + 1 :], []) and fact.owner not in speakers[t][:-1]
    assert min(seen.values()) > 5


@pytest.mark.parametrize("seed,level", [(-1, 0), (10_000_000, 1), (0, 3), (0, -1)])
def test_seeds_and_levels_out_of_range_are_refused(seed, level):
    with pytest.raises(ValueError, match="seed|level"):
        generate_sft(seed, level)


@pytest.mark.parametrize("name", ["", "nope", "sft3_1", "sft2_x", "val_", "heldout_11", "../train_real_01"])
def test_a_name_of_no_network_is_refused(name):
    with pytest.raises(DataError, match="not part of the embedded corpus"):
        conversation(name)


@pytest.mark.parametrize("name", ["train_update_b", "heldout_04", "val_000012", "sft1_0000003"])
def test_a_conversation_is_found_by_its_name(name):
    assert conversation(name).network.network_id == name


def test_validation_and_sft_are_different_conversations():
    digests = [c.network.content_digest() for c in SAMPLE] + [generate_validation(i).network.content_digest() for i in range(40)]
    assert len(set(digests)) == len(digests)


# The under-writing teacher


def test_a_teacher_without_bias_is_the_complete_one():
    none = dict.fromkeys(BiasRates.__dataclass_fields__, 0.0)
    for chat in SAMPLE[::9]:
        assert chat.biased(3, none).actions == chat.taught.actions


def test_a_teacher_who_misses_everything_writes_nothing():
    all_of_it = {**dict.fromkeys(BiasRates.__dataclass_fields__, 1.0), "late_add": 0.0}
    for chat in SAMPLE[::9]:
        assert all(actions == [{"action": "NOOP"}] for actions in chat.biased(3, all_of_it).actions)


def test_a_family_with_rate_one_is_never_written():
    rates = {**dict.fromkeys(BiasRates.__dataclass_fields__, 0.0), "observation": 1.0}
    for chat in SAMPLE:
        written = [a for actions in chat.biased(3, rates).actions for a in actions if a["action"] == "ADD"]
        assert not [a for a in written if a["utype"] == "observation" and a["layer"] == "per_speaker_profile"]
        wanted = [a for actions in chat.taught.actions for a in actions if a["action"] == "ADD"]
        assert [a for a in wanted if a["layer"] != "per_speaker_profile"] == [
            a for a in written if a["layer"] != "per_speaker_profile"
        ]


@given(st.integers(0, 10_000), st.fixed_dictionaries({name: st.floats(0, 1) for name in BiasRates.__dataclass_fields__}))
@settings(max_examples=60, deadline=None)
def test_whatever_it_misses_the_biased_teacher_stays_consistent(seed, rates):
    chat = SAMPLE[seed % len(SAMPLE)]
    taught = chat.biased(seed, rates)
    assert taught.actions == chat.biased(seed, rates).actions
    assert not any(report.errors for report in taught.reports)
    complete = {(r.owner, r.content) for r in chat.taught.states[-1].derived()}
    assert {(r.owner, r.content) for r in taught.states[-1].derived()} <= complete


def test_the_default_bias_leaves_out_about_what_it_says():
    kept = {"observation": [0, 0], "self": [0, 0]}
    for seed in range(150):
        chat = generate_sft(seed, 2)
        written = {(r.owner, r.content) for r in chat.biased(seed).states[-1].derived()}
        for fact in chat.plan.facts:
            if fact.family in kept:
                kept[fact.family][0] += (fact.owner, fact.content) in written
                kept[fact.family][1] += 1
    assert kept["self"][0] == kept["self"][1]
    assert 0.2 < kept["observation"][0] / kept["observation"][1] < 0.4


def test_an_under_writing_teachers_file_loads_as_what_that_teacher_wrote(tmp_path):
    chat = generate_validation(1003)
    under = chat.biased(seed=3)
    file = tmp_path / "under.json"
    file.write_bytes(trajectory_bytes(chat, under))
    loaded = load_trajectory(file, chat.network)
    contents = [[record.content for record in state.derived()] for state in loaded.states]
    assert contents == [[record.content for record in state.derived()] for state in under.states]
    assert len(contents[-1]) < len(chat.taught.states[-1].derived())
