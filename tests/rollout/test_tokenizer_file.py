"""A tokenizer reads text as its own tokenizer.json says, also where transformers would not."""

import json
import shutil
from pathlib import Path

import pytest

from rollout.tokenizer_file import difference_from_file, load_as_written

COMMITTED = Path(__file__).resolve().parents[2] / "configs" / "tiny_writer"


def copy_with(folder, **changes):
    """The committed tokenizer beside its qwen2 config.json; a change to None removes the key."""
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if (COMMITTED / name).is_file():
            shutil.copy(COMMITTED / name, folder / name)
    path = folder / "tokenizer_config.json"
    settings = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in settings.items() if value is not None}))
    return folder


@pytest.mark.parametrize("tokenizer_class", ["TokenizersBackend", "Qwen2Tokenizer"])
def test_the_file_is_followed_where_transformers_puts_qwens_pre_tokenizer(tmp_path, caplog, tokenizer_class):
    from transformers import AutoTokenizer

    folder = copy_with(tmp_path / "writer", auto_map=None, tokenizer_class=tokenizer_class)
    assert difference_from_file(AutoTokenizer.from_pretrained(folder), folder)
    loaded = load_as_written(str(folder))
    assert difference_from_file(loaded, folder) is None
    assert len(caplog.messages) == 1 and str(folder) in caplog.text and "tokenizer_config.json" in caplog.text
    # What is saved, beside a config.json, reads the same for everybody.
    loaded.save_pretrained(tmp_path / "saved")
    shutil.copy(COMMITTED / "config.json", tmp_path / "saved")
    again = AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert difference_from_file(again, folder) is None
    committed = AutoTokenizer.from_pretrained(COMMITTED)
    for kept in ("chat_template", "eos_token_id", "pad_token_id", "all_special_tokens", "model_max_length"):
        assert getattr(again, kept) == getattr(committed, kept)


def test_a_tokenizer_saved_as_transformers_reads_it_is_its_file(tmp_path, caplog):
    from transformers import AutoTokenizer

    folder = copy_with(tmp_path / "writer", auto_map=None)
    AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    assert load_as_written(str(folder)) and not caplog.messages


def test_the_committed_tokenizer_is_read_as_written(caplog):
    assert load_as_written(str(COMMITTED))
    assert not caplog.messages


def test_without_a_file_there_is_nothing_to_differ_from(tmp_path):
    assert difference_from_file(load_as_written(str(COMMITTED)), tmp_path) is None
