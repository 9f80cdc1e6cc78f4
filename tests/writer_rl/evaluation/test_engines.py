"""The engine of a checkpoint that is evaluated."""

import pytest

from rollout.vllm.arguments import gpu_arguments
from writer_rl.config import load_config
from writer_rl.evaluation import engines


def test_an_evaluation_takes_no_part_in_the_one_sleeping_engine_of_a_process(monkeypatch, tmp_path):
    """vLLM keeps one pool of sleeping memory a process; several Writers are evaluated in one."""
    vllm = pytest.importorskip("rollout.vllm.engine")
    given = {}

    class Recorder:
        max_model_len = 2048

        def __init__(self, *arguments, **options):
            given.update(options)

    monkeypatch.setattr(vllm, "VLLMEngine", Recorder)
    config = load_config("evaluate", None, ["--rollout.engine", "vllm"])
    assert engines._vllm(tmp_path, None, config)[1] == 2048
    assert gpu_arguments(0.4, None, 2, given["sleep_mode"])["enable_sleep_mode"] is False
    assert gpu_arguments(0.4, None, 2, True)["enable_sleep_mode"] is True
