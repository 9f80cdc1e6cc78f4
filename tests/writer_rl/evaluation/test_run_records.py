"""A run's record names the checkpoint that stands for it, what chose it, and its weights; no folder of a machine is in it."""

import hashlib
import json

import pytest

from memory_env.datafile import DataError
from writer_rl.evaluation.run_records import run_record, weights_digest


def made_run(folder, checkpoint="000010"):
    model = folder / "checkpoints" / checkpoint / "model"
    model.mkdir(parents=True)
    (model / "model.safetensors").write_bytes(b"weights")
    (folder / "config.yaml").write_text(
        f"evaluation:\n  metric: evaluation/phi\nmodel:\n  path: {folder.parent}/sft/model\noutput_dir: {folder}\n"
    )
    lines = [{"round": 5, "evaluation/phi": 0.5}, {"round": 9, "evaluation/phi": None}, {"round": 10, "evaluation/phi": 0.25}]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return model


def test_the_record_of_a_run(tmp_path):
    found = run_record("RL", 2, tmp_path / "grpo", made_run(tmp_path / "grpo"), (tmp_path,))
    assert (found.writer, found.seed, found.checkpoint, found.validation) == ("RL", 2, "000010", {"evaluation/phi": 0.25})
    assert found.weights == hashlib.sha256(b"weights").hexdigest()
    assert found.configuration == "evaluation:\n  metric: evaluation/phi\nmodel:\n  path: sft/model\noutput_dir: grpo\n"


def test_a_checkpoint_that_was_never_evaluated_has_no_validation(tmp_path):
    assert run_record("RL", 0, tmp_path / "a", made_run(tmp_path / "a", "000009"), ()).validation == {}
    assert run_record("RL", 0, tmp_path / "b", made_run(tmp_path / "b", "final"), ()).validation == {}


def test_weights_in_several_files_are_hashed_in_the_order_of_their_names(tmp_path):
    for name, content in (("model-00002.safetensors", b"b"), ("model-00001.safetensors", b"a"), ("config.json", b"{}")):
        (tmp_path / name).write_bytes(content)
    assert weights_digest(tmp_path) == hashlib.sha256(b"ab").hexdigest()
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no .safetensors"):
        weights_digest(tmp_path / "empty")
