"""Every position is known to fit the prompt before the first round, or the first that does not is named with a remedy."""

import re

import pytest

from memory_env import MemoryState, Network, step
from rollout.writer_prompt import PromptDoesNotFit
from tests.writer_rl.tiny_run import PROMPT, make_tokenizer, save_config
from writer_rl.config import ConfigError, DataSection, ModelSection, load_config
from writer_rl.evaluation.engines import open_engine
from writer_rl.train.prompt import build_prompt, fit_line, require_fitting
from writer_rl.train.writer import load_writer


def network(*sessions):
    """One session per list of what Ann says."""
    made = [
        {
            "session_id": f"s{i}",
            "session_index": i + 1,
            "topic": "",
            "ts": "2024-01-01",
            "turns": [
                {"turn": f"s{i}_t{j}", "speaker": "Ann", "content": text, "ts": "2024-01-01T10:00:00"}
                for j, text in enumerate(said)
            ],
        }
        for i, said in enumerate(sessions)
    ]
    return Network.from_dict(
        {"schema": "writer-rl-chat/1", "scenario": "t", "speakers": ["Ann"], "sessions": made, "meta": {"network_id": "zz"}}, "zz"
    )


@pytest.fixture
def data(tmp_path):
    (tmp_path / "prompt.txt").write_text(PROMPT)
    return DataSection(prompt=str(tmp_path / "prompt.txt"))


def least(data, chat, position):
    """By the prompt itself: what it needs where the memory may show nothing."""
    prompt = build_prompt(data.model_copy(update={"max_chars": 1}), make_tokenizer(), 100_000, 8)
    return len(prompt.encode(MemoryState.empty(), chat.segments()[position]).token_ids)


def test_the_bound_is_exact_and_the_memory_does_not_count(data):
    chat = network(["tea"], ["hello"] * 30)
    needed = least(data, chat, 1)
    assert require_fitting(build_prompt(data, make_tokenizer(), needed + 8, 8), [chat], None) == 2
    tight = build_prompt(data, make_tokenizer(), needed + 7, 8)
    with pytest.raises(PromptDoesNotFit, match=f"network zz, position 1: .* need {needed} tokens, {needed - 1} are allowed"):
        require_fitting(tight, [chat], None)
    state, _ = step(MemoryState.empty(), chat.segments()[0], [])
    with pytest.raises(PromptDoesNotFit):
        tight.encode(state, chat.segments()[1])


def test_the_window_that_is_named_works(data):
    chat = network(["tea"], ["hello now"] * 32)
    prompt = build_prompt(data, make_tokenizer(), least(data, network(["hello now"] * 9), 0) + 8, 8)
    with pytest.raises(PromptDoesNotFit) as refused:
        require_fitting(prompt, [chat], None)
    window = int(re.search(r"data.window (\d+) fits", str(refused.value))[1])
    assert window == 8 and require_fitting(prompt, [chat], window) == 5


def test_one_message_too_long_for_any_window_is_said_so(data):
    prompt = build_prompt(data, make_tokenizer(), 60, 8)
    with pytest.raises(PromptDoesNotFit, match="one message alone is too long for any data.window"):
        require_fitting(prompt, [network(["tea"], ["hello " * 100])], None)


def test_a_dry_run_checks_where_the_tokenizer_is_at_hand(tmp_path):
    config = load_config("grpo", save_config(tmp_path))
    assert fit_line(config) == "longest prompt    all 5 positions fit 506 tokens"
    with pytest.raises(PromptDoesNotFit, match="network chat_0, position 0"):
        fit_line(load_config("grpo", tmp_path / "config.yaml", ["--rollout.max_new_tokens", "505"]))
    elsewhere = load_config("grpo", tmp_path / "config.yaml", ["--model.path", "nobody/has-this-model"])
    assert "not checked: the tokenizer of nobody/has-this-model" in fit_line(elsewhere)


def test_the_chat_template_gets_its_arguments(data):
    tokenizer = make_tokenizer()
    tokenizer.chat_template = (
        "{{ messages[0].content }}{% if enable_thinking is defined %} {{ 'tea' if enable_thinking else 'now' }}{% endif %}"
    )
    segment = network(["hello"]).segments()[0]

    def last_word(settings):
        return tokenizer.decode(
            build_prompt(data, tokenizer, 512, 8, settings).encode(MemoryState.empty(), segment).token_ids[-1:]
        )

    assert last_word(ModelSection()) not in ("now", "tea")
    given = load_config("grpo", None, ["--model.chat_template_kwargs", "{enable_thinking: false}"]).model
    assert last_word(given) == "now"


def test_a_context_shorter_than_the_models_is_kept_to_everywhere(tmp_path):
    path = save_config(tmp_path)
    config = load_config("grpo", path, ["--rollout.max_model_len", "60"])
    assert fit_line(config) == "longest prompt    all 5 positions fit 54 tokens"
    assert load_writer(config).prompt.max_prompt_tokens == 54
    engine, prompt = open_engine(tmp_path / "writer", load_config("evaluate", path, ["--rollout.max_model_len", "60"]))
    assert prompt.max_prompt_tokens == 54
    with pytest.raises(ConfigError, match="rollout.max_model_len: 513 is more than the model's context of 512"):
        fit_line(load_config("grpo", path, ["--rollout.max_model_len", "513"]))
