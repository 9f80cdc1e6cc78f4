import json
import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env import MemoryState, ObservationLimits, PromptTemplate, step
from memory_env.conversation import Message, Segment
from rollout.writer_prompt import PromptDoesNotFit, WriterPrompt, control_tokens
from tests.rollout.conftest import SPECIAL, make_tokenizer

PROMPT = """--- system ---
Write memory.
--- user ---
Members: {roster}
{messages}
Memory:
{heads}
At most {budget} actions.
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("prompt") / "writer.txt"
    path.write_text(PROMPT)
    return PromptTemplate.load(path)


def segment(*contents, position=0, speakers=("Ana", "Ben")):
    messages = tuple(
        Message(speakers[i % len(speakers)], text, "2025-01-01T10:00:00", f"s{position}_t{i}", f"s{position}", i)
        for i, text in enumerate(contents)
    )
    return Segment(position, f"s{position}", "2025-01-01T10:00:00", messages)


def remember(*contents, owner="Ana"):
    actions = [
        {"action": "ADD", "owner": owner, "source": owner, "layer": "per_speaker_core", "utype": "fact", "content": c}
        for c in contents
    ]
    state = MemoryState.empty()
    for start in range(0, len(actions), 8):
        state, report = step(
            state, segment("hello", "hi", position=start // 8), json.dumps({"actions": actions[start : start + 8]})
        )
        assert not report.errors
    return state


def test_prompt_is_the_chat_template_around_the_rendered_observation(tokenizer, template):
    prompt = WriterPrompt(tokenizer, template, 1000)
    encoded = prompt.encode(remember("Ana likes tea"), segment("I moved."), "n")
    text = tokenizer.decode(encoded.token_ids)
    assert text.startswith("<|im_start|>system\nWrite memory.<|im_end|>\n<|im_start|>user\nMembers: Ana, Ben\n")
    assert "Ana @ 2025-01-01T10:00:00: I moved." in text and "Ana likes tea" in text
    assert text.endswith("<|im_end|>\n<|im_start|>assistant\n")
    assert encoded.omitted_heads == 0 and encoded.observation.heads[0].content == "Ana likes tea"


def test_the_default_prompt_begins_with_what_a_group_shares(tokenizer, repository):
    """System prompt, roster, new messages and the common memory stand first, so that a prefix cache serves all members of a group."""
    prompt = WriterPrompt(tokenizer, PromptTemplate.load(repository / "configs" / "prompts" / "writer.jinja"), 100_000)
    states = [remember("Ana likes tea", "Ana has a cat", last) for last in ("Ana moved to Rome", "Ana sold her car")]
    texts = [tokenizer.decode(prompt.encode(state, segment("I moved."), "n").token_ids) for state in states]
    shared = os.path.commonprefix(texts)
    places = [
        shared.find(part) for part in ("<|im_start|>system", "## Members\n- Ana\n- Ben", ": I moved.", "likes tea", "has a cat")
    ]
    assert -1 not in places and places == sorted(places)
    assert "moved to Rome" not in shared and "sold her car" not in shared


def test_tokenizer_without_chat_template_is_refused_with_the_remedy(template):
    with pytest.raises(ValueError, match="has no chat template; use an instruct model's tokenizer"):
        WriterPrompt(make_tokenizer(chat_template=None), template, 100)


def test_chat_template_that_refuses_a_role_is_explained(template):
    strict = make_tokenizer("{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}x")
    with pytest.raises(ValueError, match="refuses the roles system, user.*no system role.*one user section"):
        WriterPrompt(strict, template, 100).encode(MemoryState.empty(), segment("hi"))


hostile = st.lists(
    st.one_of(
        st.sampled_from([*SPECIAL, "<|im_", "end|>", "<", "|", ">", "assistant\n", "\n", "<tool_call>"]),
        st.text(max_size=4),
    ),
    max_size=12,
).map("".join)


@given(content=hostile, name=hostile, memory=hostile)
def test_data_never_becomes_a_special_token(tokenizer, template, content, name, memory):
    prompt = WriterPrompt(tokenizer, template, 5000)
    plain = prompt.encode(remember("x"), segment("x", speakers=("Ana",)))
    dirty = segment(content, speakers=(name or "Ana",))
    state = remember("x")
    head = state.heads()[0]
    state = MemoryState.from_records([replace(head, content=memory or "x")], state.roster)
    encoded = prompt.encode(state, dirty)
    special = set(tokenizer.all_special_ids)
    assert [i for i in encoded.token_ids if i in special] == [i for i in plain.token_ids if i in special]


def test_the_same_data_would_inject_without_the_escape(tokenizer):
    """Shows that the test above can fail: the tokenizer does read these strings as control tokens."""
    ids = tokenizer("a<|im_end|>b<pad>", add_special_tokens=False)["input_ids"]
    assert set(ids) & set(tokenizer.all_special_ids)


def test_control_tokens_hold_added_markers_but_no_added_words():
    tokenizer = make_tokenizer()
    tokenizer.add_tokens(["<tool_call>", "Kwame"])
    assert set(control_tokens(tokenizer)) == {*SPECIAL, "<tool_call>"}


def test_memory_that_does_not_fit_is_left_out_and_counted(tokenizer, template):
    state = remember(*(f"Ana remembers the number {i} of the long list" for i in range(40)))
    ask = segment("Is number 7 on the long list?")
    full = WriterPrompt(tokenizer, template, 100_000).encode(state, ask)
    bare = WriterPrompt(tokenizer, template, 100_000, ObservationLimits(max_chars=0)).encode(state, ask)
    assert full.omitted_heads == 0 and bare.omitted_heads == 40
    previous = -1
    for limit in range(len(bare.token_ids), len(full.token_ids) + 1, 157):
        encoded = WriterPrompt(tokenizer, template, limit).encode(state, ask)
        shown = len(encoded.observation.heads)
        assert len(encoded.token_ids) <= limit and shown + encoded.omitted_heads == 40 and shown >= previous
        previous = shown
    line = (len(full.token_ids) - len(bare.token_ids)) / 40
    assert len(encoded.token_ids) > limit - 3 * line, "room is used, not wasted"


def test_roster_and_segment_alone_too_long_is_an_error_with_place_and_numbers(tokenizer, template):
    state, long = remember("Ana likes tea"), segment(*["hello there"] * 40, position=3)
    needed = len(WriterPrompt(tokenizer, template, 100_000, ObservationLimits(max_chars=0)).encode(state, long).token_ids)
    with pytest.raises(PromptDoesNotFit, match=rf"network n7, position 3: .* need {needed} tokens, 200 are allowed"):
        WriterPrompt(tokenizer, template, 200).encode(state, long, "n7")
    assert len(WriterPrompt(tokenizer, template, needed).encode(state, long).token_ids) == needed


def test_equal_observations_are_rendered_once(tokenizer, template, monkeypatch):
    prompt = WriterPrompt(tokenizer, template, 1000)
    calls = []
    render = PromptTemplate.render
    monkeypatch.setattr(PromptTemplate, "render", lambda self, *a: calls.append(1) or render(self, *a))
    first = [prompt.encode(MemoryState.empty(), segment("hi", "there")) for _ in range(8)]
    assert len(calls) == 1 and len(set(first)) == 1
    prompt.encode(remember("Ana likes tea"), segment("hi", "there"))
    assert len(calls) == 2
