import json
import threading

import pytest

from memory_env.actions import max_actions, parse_completion, schema_error
from memory_env.records import DERIVED_LAYERS, DERIVED_UTYPES
from tests.memory_env.chats import NOOP, add, output, update


@pytest.mark.parametrize(("messages", "budget"), [(0, 8), (1, 8), (4, 8), (5, 10), (25, 50)])
def test_the_budget_of_eq_20(messages, budget):
    assert max_actions(messages) == budget


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        (output(NOOP), [NOOP]),
        (f" \n\t{output(NOOP)}\u2003\n", [NOOP]),
        ('{"actions": [], "note": "more keys"}', []),
        ('{"actions": [1, null, "x", [2]]}', [1, None, "x", [2]]),
        ('{"actions": [{"action": "ADD", "content": "a\nb\tc"}]}', [{"action": "ADD", "content": "a\nb\tc"}]),
        ('{"actions": [{"a": 1, "a": 2}]}', [{"a": 2}]),
        ('{"actions": [1], "actions": [2]}', [2]),
        (r'{"actions": ["\ud800"]}', ["\ud800"]),
    ],
)
def test_an_object_with_a_list_of_actions_is_taken_verbatim(text, actions):
    parsed = parse_completion(text)
    assert parsed.valid and parsed.actions == actions and parsed.error == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "NOOP",
        "null",
        "[]",
        json.dumps([NOOP]),
        '"actions"',
        "{}",
        '{"Actions": []}',
        '{"actions": null}',
        '{"actions": {}}',
        '{"actions": "NOOP"}',
        f"```json\n{output(NOOP)}\n```",
        f"Here you are: {output(NOOP)}",
        f"{output(NOOP)} done",
        f"{output(NOOP)}{output(NOOP)}",
        output(NOOP)[:-1],
        output(NOOP)[:-2],
        '{"actions": [{"action": "NOOP"},]}',
        "{'actions': []}",
        "\ufeff" + output(NOOP),
        "<think>x</think>" + output(NOOP),
        '{"actions": [' + "1" * 5000 + "]}",
        "[" * 100_000,
        '{"actions": ' + "[" * 50_000 + "]" * 50_000 + "}",
        '{"actions": ' + '{"a":' * 5_000,
        "\x00",
    ],
)
def test_anything_else_is_invalid_with_one_line_that_says_why(text):
    parsed = parse_completion(text)
    assert not parsed.valid and parsed.actions == []
    assert parsed.error.startswith("invalid JSON") and "\n" not in parsed.error and len(parsed.error) < 200


def test_what_json_accepts_is_accepted():
    assert parse_completion('{"actions": [NaN, 1e999, -Infinity]}').valid
    assert parse_completion('{"actions": [' + "1" * 4000 + "]}").valid
    assert parse_completion(output(add("x" * 10_000_000))).valid


def test_how_deep_nesting_may_go_does_not_depend_on_the_caller():
    """The parser's own limit shrinks with the caller's stack; the environment's must not."""

    def verdicts():
        texts = ('{"actions": ' + "[" * depth + "]" * depth + "}" for depth in range(390, 410))
        return [parse_completion(text).valid for text in texts]

    def deeper(levels):
        return verdicts() if levels == 0 else deeper(levels - 1)

    shallow = verdicts()
    assert True in shallow and False in shallow
    deep = []
    thread = threading.Thread(target=lambda: deep.extend(deeper(450)))
    thread.start()
    thread.join()
    assert deep == shallow


def test_brackets_inside_strings_are_no_nesting():
    parsed = parse_completion(output(add("[" * 5000)))
    assert parsed.valid and parsed.actions[0]["content"] == "[" * 5000


def test_well_formed_actions():
    for layer in DERIVED_LAYERS:
        for utype in DERIVED_UTYPES:
            assert schema_error(add("x", layer=layer, utype=utype)) == ""
    assert schema_error(update("anything", "x")) == ""
    assert schema_error(NOOP) == ""
    assert schema_error({**NOOP, "reason": "small talk"}) == ""
    assert schema_error({**add("x"), "confidence": 1, "entry_id": [3]}) == ""


def test_shape_is_apart_from_owner_layer_consistency_and_roster():
    assert schema_error(add("x", owner="GROUP", source="GROUP")) == ""
    assert schema_error(add("x", owner="Nobody", layer="group_insight")) == ""


@pytest.mark.parametrize(
    "action",
    [
        None, 3, "NOOP", [], [NOOP], {}, {"action": None}, {"action": ["ADD"]}, {"action": {"a": 1}}, {"action": "add"},
        {"action": "DELETE"}, {"action": "NOOP "}, {"type": "NOOP"}, {"action": float("nan")},
        *({key: value for key, value in add("x").items() if key != missing} for missing in add("x") if missing != "action"),
        *({**add("x"), key: value} for key in ("owner", "source", "content") for value in ("", " \n", None, 3, ["x"], {})),
        *({**add("x"), "layer": value} for value in ("per_speaker_episodic", "core", "", None, 1, [], {})),
        *({**add("x"), "utype": value} for value in ("utterance", "Fact", "", None, 1, [], {})),
        *({**update("i", "x"), key: value} for key in ("entry_id", "content") for value in ("", "\t", None, 3, [])),
        {"action": "UPDATE", "entry_id": "i"}, {"action": "UPDATE", "content": "x"},
    ],
)  # fmt: skip
def test_ill_formed_actions(action):
    assert schema_error(action)
