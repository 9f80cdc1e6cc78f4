"""What an evaluation keeps on the disk: every text that JSON can hold comes back, and a torn line never costs a whole one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env import Network
from memory_env.datafile import DataError
from memory_env.replay import Completion
from writer_rl.evaluation.memories import MemoryFile, append_line, read_lines

# What Python calls a line end (and JSON does not), half of a surrogate pair, and what JSON escapes.
AWKWARD = [*'\u2028\u2029\x85\x0b\x0c\x1c\x1e\ud83d\ude00\x00"\\\n\r好éa']
texts = st.text(st.sampled_from(AWKWARD), max_size=8)


def network(text: str) -> Network:
    return Network.from_dict(
        {
            "speakers": ["Ana"],
            "sessions": [{"session_id": "s1", "turns": [{"speaker": "Ana", "content": text}]}],
            "meta": {"network_id": "n"},
        }
    )


def halves_joined(text: str) -> str:
    """Two halves of a pair side by side are the character in any JSON text."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@given(st.lists(texts, max_size=4))
def test_every_text_survives_the_file(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "lines.jsonl"
    for text in lines:
        append_line(path, {"text": text})
    assert [line["text"] for line in read_lines(path)] == [halves_joined(text) for text in lines]
    if lines:
        path.read_text(encoding="utf-8")  # any reader of UTF-8 can open it


@given(texts, texts)
def test_a_memory_is_found_again_whatever_the_writer_wrote(tmp_path_factory, message, completion):
    path = tmp_path_factory.mktemp("memories") / "memories.jsonl"
    MemoryFile(path).add("RL", 0, "weights", network(message), [Completion(completion, True)])
    assert MemoryFile(path).get("RL", 0, "weights", network(message)) == [Completion(halves_joined(completion), True)]


def test_a_torn_last_line_is_dropped_and_a_bad_one_elsewhere_is_named(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_bytes(json.dumps({"a": "好"}, ensure_ascii=False).encode() + b'\n{"a": "\xe5\xa5')  # torn inside a character
    assert read_lines(path) == [{"a": "好"}] and path.read_bytes().endswith(b"}\n")
    path.write_bytes(b'{"a": 1}\n{oops\n{"a": 2}\n')
    with pytest.raises(DataError, match="line 2"):
        read_lines(path)
