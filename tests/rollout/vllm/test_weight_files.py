import shutil
import tempfile

import pytest
import torch
from safetensors.torch import load_file

from rollout.engine import RolloutInputError
from rollout.vllm import weight_files as weight_files_module
from rollout.vllm.model_weights import checked_tensors, expected_shapes
from rollout.vllm.weight_files import default_parent, weight_files
from rollout.weights import named_weights


@pytest.mark.parametrize("shard_bytes", [1, 5_000, 2**30])
@pytest.mark.parametrize("tied", [True, False])
def test_files_hold_every_tensor_and_vanish(build_model, tmp_path, tied, shard_bytes):
    model = build_model(tie_word_embeddings=tied)
    with weight_files(named_weights(model), str(tmp_path), shard_bytes) as folder:
        read = {}
        for file in folder.glob("*.safetensors"):
            read.update(load_file(file))
    assert read.keys() == model.state_dict().keys()
    assert all(torch.equal(read[name], tensor) for name, tensor in model.state_dict().items())
    assert list(tmp_path.iterdir()) == []


def test_shared_memory_is_used_only_if_the_weights_fit(monkeypatch, tmp_path):
    monkeypatch.setattr(weight_files_module, "SHARED_MEMORY", str(tmp_path))
    free = shutil.disk_usage(tmp_path).free
    assert default_parent(free // 2) == str(tmp_path)
    assert default_parent(2 * free) == tempfile.gettempdir()
    monkeypatch.setattr(weight_files_module, "SHARED_MEMORY", str(tmp_path / "none"))
    assert default_parent() == tempfile.gettempdir()


def test_nothing_is_left_of_a_transfer_that_breaks_off(build_model, tmp_path):
    def interrupted():
        yield from list(named_weights(build_model()))[:3]
        raise OSError("link down")

    with pytest.raises(OSError, match="link down"), weight_files(interrupted(), str(tmp_path)):
        raise AssertionError("half of the weights were offered")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tied", [True, False])
def test_a_model_folder_names_its_tensors_without_loading_them(build_model, tmp_path, tied):
    model = build_model(tie_word_embeddings=tied)
    model.save_pretrained(tmp_path)
    assert expected_shapes(str(tmp_path)) == {name: tensor.shape for name, tensor in model.state_dict().items()}


def test_a_folder_without_a_model_is_explained(tmp_path):
    with pytest.raises(RolloutInputError, match=f"{tmp_path} is no Hugging Face model folder.*launch/export.py"):
        expected_shapes(str(tmp_path))


def test_unfit_tensors_are_named():
    expected = {"a": torch.Size([2]), "b": torch.Size([3])}
    good = [("a", torch.zeros(2)), ("b", torch.zeros(3))]
    assert [name for name, _ in checked_tensors(good, expected, "m")] == ["a", "b"]
    for sent, message in [
        ([*good, ("c", torch.zeros(1))], "'c' is no parameter of m"),
        ([("a", torch.zeros(3))], r"a has shape \[3\], the engine's has \[2\]"),
        (good[:1], "1 parameters were not sent, b among them"),
    ]:
        with pytest.raises(ValueError, match=message):
            list(checked_tensors(sent, expected, "m"))
