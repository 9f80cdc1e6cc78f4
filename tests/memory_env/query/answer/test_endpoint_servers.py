"""Servers as they are: each refuses, wraps or words things in its own way, through the real openai package over HTTP."""

import json
import re

import pytest

from memory_env.datafile import DataError
from memory_env.query.answer.endpoint import EndpointAnswerer
from memory_env.query.answer.endpoint_client import EndpointClient, EndpointSettings, EndpointUnusable
from memory_env.query.answer.endpoint_dialect import Dialect
from memory_env.query.answer.endpoint_response import json_objects, without_thoughts
from memory_env.query.protocol import JudgeError, WriteError
from tests.memory_env.query.answer.test_endpoint import KEY, QUESTION, RIGHT, Waits, client
from tests.memory_env.query.chat_server import Script, completion, error, ok, raw, serving
from tests.memory_env.query.memories import CLUB, evidence_of

pytestmark = pytest.mark.endpoint
EVIDENCE = evidence_of(QUESTION.question, CLUB)
GOOD = json.dumps(RIGHT)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def refusing(refuses, reason, status=400):
    """A server that refuses what `refuses(request)` finds, with its own words or a whole error body."""
    body = {"error": {"message": reason}} if isinstance(reason, str) else reason

    def reply(handler, request):
        (raw(status, json.dumps(body)) if refuses(request) else ok(RIGHT))(handler, request)

    return Script(reply)


def answer(script, times=1, **settings):
    with serving(script) as url:
        shared = client(url, **settings)
        return [EndpointAnswerer(shared).answer(QUESTION, EVIDENCE).text for _ in range(times)]


def format_of(request):
    return request.get("response_format", {}).get("type")


MAX_TOKENS = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
REFUSALS = {
    "max_tokens": (lambda r: "max_tokens" in r, MAX_TOKENS, 400),
    "no limit at all": (lambda r: "max_tokens" in r or "max_completion_tokens" in r, "max_completion_tokens: unknown field", 422),
    "temperature": (
        lambda r: r.get("temperature", 1) != 1,
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
        400,
    ),
    "temperature, named apart": (
        lambda r: "temperature" in r,
        {"error": {"message": "Unsupported value.", "param": "temperature"}},
        400,
    ),
    "json_object": (
        lambda r: format_of(r) == "json_object",
        {"error": "'response_format.type' must be 'json_schema' or 'text'"},
        400,
    ),
    "any format": (lambda r: format_of(r), "response_format is not supported by this model", 400),
    "any format, word by word": (
        lambda r: format_of(r),
        "json_schema and json_object are invalid for response_format",
        400,
    ),
    "an unknown field, FastAPI": (
        lambda r: "response_format" in r,
        {"detail": [{"loc": ["body", "response_format"], "msg": "Extra inputs are not permitted", "type": "extra_forbidden"}]},
        422,
    ),
    "a server error": (lambda r: format_of(r), "response_format: not supported", 500),
    "the system message": (
        lambda r: r["messages"][0]["role"] == "system",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        400,
    ),
    "a large limit": (
        lambda r: r.get("max_tokens", 0) > 512,
        "max_tokens is too large: 1024. This model supports at most 512 completion tokens",
        400,
    ),
    "everything, one after the other": (
        lambda r: "max_tokens" in r or "temperature" in r or format_of(r),
        {"error": {"message": "Unsupported parameters: max_tokens, temperature, response_format"}},
        400,
    ),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_refused_parameter_is_changed_once_and_remembered(kind):
    script = refusing(*REFUSALS[kind])
    assert answer(script, times=3) == ["Alice: figs"] * 3
    refused = [request for request in script.requests if REFUSALS[kind][0](request)]
    # Each change costs one request, of the first question alone; the questions after it are asked right at once.
    assert len(script.requests) == 3 + len(refused) and not any(map(REFUSALS[kind][0], script.requests[-3:]))
    assert len(refused) <= 5


def test_a_schema_is_sent_where_a_server_wants_one_and_prompt_and_rules_survive():
    script = refusing(*REFUSALS["json_object"])
    answer(script)
    sent = script.requests[-1]["response_format"]
    assert sent["type"] == "json_schema" and list(sent["json_schema"]["schema"]["properties"]) == ["answer"]
    script = refusing(*REFUSALS["the system message"])
    answer(script)
    (merged,) = script.requests[-1]["messages"]
    assert merged["role"] == "user" and "You answer a question" in merged["content"] and QUESTION.question in merged["content"]


@pytest.mark.parametrize(
    "reason",
    [
        "This model's maximum context length is 512 tokens. However, you requested 1024 (max_tokens) and 400 in the messages.",
        "context length exceeded; reduce the length of the messages or max_tokens",
        "the request is invalid",
        "temperature control of the building is nobody's business",
    ],
)
def test_what_is_no_refusal_of_a_parameter_fails_the_question_with_the_servers_words(reason):
    script = Script(error(400, reason))
    with pytest.raises(JudgeError, match=re.escape(reason)) as caught:
        answer(script)
    assert caught.value.refused and len(script.requests) == 1


def test_a_trained_writer_is_asked_without_what_its_server_does_not_know():
    script = refusing(lambda r: "skip_special_tokens" in r, "Unrecognized request argument supplied: skip_special_tokens")
    with serving(script) as url:
        shared = client(url)
        assert [shared.text("write", [{"role": "user", "content": "x"}], 9)[0] for _ in range(2)] == [GOOD] * 2
    assert len(script.requests) == 3


WRAPPED = {
    "plain": GOOD,
    "thought": f"<think>\nis it {{}} or {{'a': 1}}?\n</think>\n\n{GOOD}",
    "thought opened by the template": f"let me see {{\n</think>\n{GOOD}",
    "fence": f"```json\n{GOOD}\n```",
    "fence in prose": f"Here is the JSON:\n```json\n{GOOD}\n```\nI hope it helps.",
    "fence without a language": f"Sure!\n```\n{GOOD}\n```",
    "prose": f"The answer is {GOOD}, as asked.",
    "an example first": f'The form is {{"answer": ""}} and the answer {GOOD}',
    "harmony": f"<|channel|>analysis<|message|>hm {{}}<|end|><|channel|>final<|message|>{GOOD}",
    "raw line breaks": '{"answer": "Alice: figs"\n\n}',
    "parts": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": GOOD}],
    "parts in halves": [{"type": "text", "text": GOOD[:9]}, {"type": "text", "text": GOOD[9:]}],
    "texts": [GOOD],
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_json_is_taken_out_of_what_a_model_wraps_it_in(kind):
    script = Script(raw(200, json.dumps(completion(WRAPPED[kind]))))
    assert answer(script) == ["Alice: figs"]
    assert len(script.requests) == 1


def test_thinking_aloud_never_becomes_the_answer():
    assert without_thoughts('<think>{"answer": "Bob"}</think>') == ""
    assert list(json_objects('<think>{"answer": "Bob"}</think>{"answer": "Alice"}'))[0] == {"answer": "Alice"}
    assert list(json_objects("{" * 5000)) == []
    assert list(json_objects('{"a": "</think>"}'))[0] == {"a": "</think>"}


BROKEN = {
    "null message": completion(None) | {"choices": [{"index": 0, "message": None, "finish_reason": "stop"}]},
    "null choices": completion(None) | {"choices": None},
    "null content": completion(None),
    "a choice of nothing": completion(None) | {"choices": [{}]},
    "choices of another kind": completion(None) | {"choices": "none"},
    "content of another kind": completion(17),
    "an overload inside": {"id": "g", "error": {"message": "Upstream temporarily overloaded", "code": 502}},
    "an error in words": {"error": "Upstream temporarily overloaded"},
    "an error in a choice": completion(None)
    | {"choices": [{"index": 0, "message": None, "finish_reason": "error", "error": {"message": "overloaded", "code": 503}}]},
    "a list": [1, 2],
    "a text": "hello",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_every_field_is_checked_before_it_is_used(kind):
    script = Script(raw(200, json.dumps(BROKEN[kind])), ok(RIGHT))
    assert answer(script) == ["Alice: figs"] and len(script.requests) == 2


def test_the_servers_own_reason_is_in_the_error():
    with pytest.raises(JudgeError, match="Upstream temporarily overloaded"):
        answer(Script(raw(200, json.dumps(BROKEN["an overload inside"]))), max_attempts=2)
    with pytest.raises(JudgeError, match="no model of that name is loaded"):
        answer(Script(raw(409, json.dumps({"detail": "no model of that name is loaded"}))), max_attempts=2)
    with pytest.raises(JudgeError, match="OpenAI-compatible URL"):
        answer(Script(raw(200, "<html><title>Login</title>", {"Content-Type": "text/html"})), max_attempts=2)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, {"message": "You exceeded your current quota, please check your plan.", "code": "insufficient_quota"}),
        (429, {"message": "You exceeded your current quota.", "type": "insufficient_quota"}),
        (402, {"message": "Insufficient credits"}),
        (429, {"message": "Insufficient balance"}),
        (200, {"message": "Insufficient credits", "code": 402}),
    ],
)
def test_a_spent_quota_is_asked_once(status, body):
    script, waits = Script(raw(status, json.dumps({"error": body}))), Waits()
    with serving(script) as url, pytest.raises(EndpointUnusable, match=body["message"]) as caught:
        EndpointAnswerer(client(url, waits)).answer(QUESTION, EVIDENCE)
    assert len(script.requests) == 1 and not waits and url in str(caught.value)


def test_a_rate_limit_that_speaks_of_a_quota_is_waited_for():
    words = "You exceeded your current quota: 15 requests per minute. Please retry in 31 s."
    assert answer(Script(error(429, words), ok(RIGHT))) == ["Alice: figs"]
    plain = error(429, "You exceeded your current quota.", headers={"Retry-After": "1"})
    assert answer(Script(plain, ok(RIGHT))) == ["Alice: figs"]


def test_a_wrong_address_or_key_is_said_before_any_work():
    with serving(Script(ok(RIGHT))) as url:
        EndpointClient(EndpointSettings("m", url)).check()  # its list of models is a 501: a server all the same
    with pytest.raises(EndpointUnusable, match=rf"{re.escape(url)}: no server answers \(.*refused.*\); check the address"):
        EndpointClient(EndpointSettings("m", url)).check()
    for wrong in ("localhost:8000/v1", "htp://localhost:8000", "http://"):
        with pytest.raises(DataError, match="must begin with http"):
            EndpointClient(EndpointSettings("m", wrong))


def test_a_key_that_is_refused_is_said_before_any_work():
    script = Script(error(401, f"Incorrect API key provided: {KEY}"))
    with serving(script, gets=script) as url, pytest.raises(EndpointUnusable, match="Incorrect API key provided") as caught:
        EndpointClient(EndpointSettings("m", url)).check()
    assert KEY not in str(caught.value) and url in str(caught.value)


def test_a_server_that_ends_in_the_middle_is_named():
    with serving(Script(ok(RIGHT))) as url:
        shared = client(url, max_attempts=2)
    with pytest.raises(JudgeError, match=re.escape(url)):
        EndpointAnswerer(shared).answer(QUESTION, EVIDENCE)


def test_a_writer_that_fails_is_no_judge_and_says_whether_it_refused():
    for reply, refused in ((ok("no", refusal="I cannot"), True), (ok("nonsense"), True), (error(500), False)):
        with serving(Script(reply)) as url, pytest.raises(WriteError, match="write of position 3 failed") as caught:
            client(url, max_attempts=2).complete("write", [{"role": "user", "content": "x"}], dict, "position 3")
        assert caught.value.refused is refused and not isinstance(caught.value, JudgeError)


def test_giving_up_parameters_ends():
    dialect, steps = Dialect(), 0
    words = "unsupported: response_format, max_tokens, temperature, skip_special_tokens, the system role"
    while dialect is not None:
        last, dialect, steps = dialect, dialect.without(words), steps + 1
    sent = last.request([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}], 5, True, None, {"x": 1})
    assert sent == {"messages": [{"role": "user", "content": "s\n\nu"}]} and steps < 12
