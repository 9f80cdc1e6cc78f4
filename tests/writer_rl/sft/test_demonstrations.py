"""What SFT shows: the teacher's own words after the Writer's own prompt, the same for everyone who asks again."""

import json
import random
from dataclasses import replace
from itertools import pairwise

import pytest

from memory_env import MemoryState, PromptTemplate
from memory_env.corpus import BiasRates, generate_sft
from memory_env.corpus.home import HOME
from memory_env.corpus.shapes import FULL
from memory_env.corpus.wide import WIDE
from memory_env.datafile import DataError
from rollout.writer_prompt import WriterPrompt
from writer_rl.config import resolve
from writer_rl.model.tiny import tiny_tokenizer
from writer_rl.sft.demonstrations import (
    COPIED,
    SPELT,
    ConversationMix,
    Demonstration,
    Stream,
    batches_of,
    copy_pool,
    corpus_pool,
    demonstrate,
    network_pool,
)

PROMPT = resolve("configs/prompts/tiny_writer.jinja")
LIMIT = 384


@pytest.fixture(scope="module")
def prompt():
    return WriterPrompt(tiny_tokenizer(), PromptTemplate.load(PROMPT), 2048 - LIMIT)


def said(prompt, sample):
    text = prompt.tokenizer.decode(sample.completion_ids)
    assert text.endswith("<|end|>")
    return json.loads(text.removesuffix("<|end|>"))["actions"]


def test_a_demonstration_is_the_prompt_about_the_teachers_memory_and_the_teachers_actions(prompt):
    conversation = generate_sft(7, 2)
    taught = conversation.taught
    samples = demonstrate(conversation.network, taught.actions, taught.states, prompt, LIMIT)
    before = [MemoryState.empty(), *taught.states]
    for t, (segment, sample) in enumerate(zip(conversation.network.segments(), samples, strict=True)):
        assert said(prompt, sample) == taught.actions[t]
        assert sample.prompt_ids == prompt.encode(before[t], segment).token_ids


def test_a_completion_over_the_limit_is_an_error_not_a_cut(prompt):
    conversation = generate_sft(7, 2)
    taught = conversation.taught
    with pytest.raises(DataError, match=r"position \d+: the teacher's output has \d+ tokens.*max_new_tokens"):
        demonstrate(conversation.network, taught.actions, taught.states, prompt, 5)


@pytest.mark.parametrize("count", [1, 5, 64, 100])
def test_a_pass_shows_every_sample_once_in_batches_of_similar_length(count):
    samples = [Demonstration((0,) * (1 + i % 9), (i,)) for i in range(count)]
    batches = batches_of(samples, 4, random.Random(0))
    assert sorted(s.completion_ids[0] for batch in batches for s in batch) == list(range(count))
    assert all(len(batch) <= 4 for batch in batches)
    spread = [max(map(lambda s: len(s.prompt_ids), b)) - min(map(lambda s: len(s.prompt_ids), b)) for b in batches]
    assert max(spread) <= 3


def test_every_pass_over_networks_is_in_another_order_and_repeatable():
    samples = [Demonstration((i,), (i,)) for i in range(40)]
    pool = network_pool(samples, 4, "0/0")
    assert pool(0) == network_pool(samples, 4, "0/0")(0) != pool(1)
    assert pool(0) != network_pool(samples, 4, "1/0")(0)


def test_a_stream_goes_on_from_any_place_as_if_it_had_never_stopped():
    pool = network_pool([Demonstration((i,), (i,)) for i in range(10)], 3, "0/0")
    stream = Stream(pool)
    batches, places = [], []
    for _ in range(9):
        places.append(stream.place)
        batches.append(stream.next())
    for place, rest in zip(places, range(9), strict=True):
        again = Stream(pool, place)
        assert [again.next() for _ in range(9 - rest)] == batches[rest:]
    assert all(a < b for a, b in pairwise(places))


def test_copying_asks_for_what_followed_two_tokens(prompt):
    tokenizer = prompt.tokenizer
    spelt = 0
    for batch in copy_pool(tokenizer, len(tokenizer), 40, "0/0")(0):
        for sample in batch:
            *string, separator, first, second = sample.prompt_ids
            text = (first, second, *sample.completion_ids)
            assert any(tuple(string[place : place + 2 + COPIED]) == text for place in range(len(string)))
            assert not set(string) & set(tokenizer.all_special_ids)
            assert separator == tokenizer.convert_tokens_to_ids("<|writer|>")
            spelt += len(set(string)) <= SPELT
            assert len(set(string)) in (*range(SPELT + 1), len(string))
    assert 2 <= spelt <= 20


def test_the_base_stage_is_shown_another_language(prompt):
    home, wide = (corpus_pool(ConversationMix(2, FULL, book=book), prompt, LIMIT, 4, 0, 0)(0) for book in (HOME, WIDE))
    owners = [{action.get("owner") for batch in pool for s in batch for action in said(prompt, s)} for pool in (home, wide)]
    assert owners[0] <= {*HOME.names, "GROUP", None} and owners[1] <= {*WIDE.names, "GROUP", None}


def samples_of(pool, numbers):
    return [sample for number in numbers for batch in pool(number) for sample in batch]


def test_the_corpus_never_repeats_itself_between_pools_seeds_and_stages(prompt):
    taste = ConversationMix(2, FULL)
    seen = [set(samples_of(corpus_pool(taste, prompt, LIMIT, 4, seed, stage), [0, 1])) for seed in (0, 1) for stage in (0, 1)]
    assert all(len(s) > 20 for s in seen)
    shared = set.intersection(*seen)
    assert len(shared) <= 1, "chit-chat alone may recur"


def test_the_biased_teacher_writes_less_and_is_asked_about_its_own_memory(prompt):
    taste = ConversationMix(2, FULL)
    biased = ConversationMix(2, FULL, bias=BiasRates())
    full, thin = (samples_of(corpus_pool(t, prompt, LIMIT, 8, 0, 0), [0]) for t in (taste, biased))
    written = [
        sum(len([a for a in said(prompt, s) if a["action"] != "NOOP"]) for s in samples) / len(samples)
        for samples in (full, thin)
    ]
    assert written[1] < 0.75 * written[0]
    for sample in thin:
        shown = prompt.tokenizer.decode(sample.prompt_ids)
        for action in said(prompt, sample):
            assert action["action"] != "UPDATE" or f"#{action['entry_id']}\n" in shown


def test_easier_conversations_are_mixed_in(prompt):
    def longest(easier):
        pool = corpus_pool(ConversationMix(2, FULL, easier=easier), prompt, LIMIT, 8, 0, 0)
        lengths = [len(s.prompt_ids) for s in samples_of(pool, [0])]
        return sum(lengths) / len(lengths)

    assert longest(0.9) < 0.7 * longest(0.0)


def test_a_shape_of_ones_own_is_used(prompt):
    def updates(rate):
        samples = samples_of(corpus_pool(ConversationMix(2, replace(FULL, update_rate=rate)), prompt, LIMIT, 8, 0, 0), [0])
        actions = [action["action"] for s in samples for action in said(prompt, s)]
        return actions.count("UPDATE") / len(actions)

    assert updates(0.0) == 0.0 and updates(0.7) > 0.35
