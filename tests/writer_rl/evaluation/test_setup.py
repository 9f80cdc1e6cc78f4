"""Figures of the offline judge never pass for a model's."""

import pytest

from writer_rl.config import ROOT, ConfigError, load_config
from writer_rl.evaluation.setup import judging_line

MODEL_REWARD = ["--reward.qa.backend", "openai", "--reward.qa.model", "big"]


def line(*arguments):
    return judging_line(load_config("evaluate", None, arguments))


def test_who_judges_is_said():
    assert line() == "answers and verdicts by the offline rules, no model"
    assert "verdicts by big" in line("--evaluation.backend", "openai", "--evaluation.model", "big")
    both = line("--evaluation.backend", "openai", "--evaluation.model", "big", "--evaluation.judge_model", "strict")
    assert "answers by big, verdicts by strict" in both


def test_a_run_whose_reward_asks_a_model_is_not_judged_offline_unnoticed():
    with pytest.raises(ConfigError, match="set evaluation.backend openai"):
        line(*MODEL_REWARD)
    said = line(*MODEL_REWARD, "--evaluation.backend", "offline")
    assert said.startswith("WARNING: ") and "the reward's were by big" in said
    assert "no model" in line("--reward.qa.enabled", "false", *MODEL_REWARD)


@pytest.mark.parametrize("name", ["--evaluation.model", "--evaluation.judge_model"])
def test_a_model_that_nobody_would_ask_is_refused(name):
    with pytest.raises(ConfigError, match="never asks big"):
        line(name, "big")
    assert line("--evaluation.model", "big", "--evaluation.query", "openai").startswith("answers and verdicts by the offline")


def test_the_gpu_configuration_is_judged_by_a_model():
    assert "DeepSeek-V4-Flash" in judging_line(load_config("evaluate", ROOT / "configs/qwen2.5-3b.yaml"))
