"""Chat completions from an OpenAI-compatible endpoint: bounded, patient, cached, and never silently wrong.

What differs between servers is in `endpoint_dialect`, what a failure means in `endpoint_errors`, what a response says in
`endpoint_response`.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from memory_env.datafile import DataError
from memory_env.query.answer.endpoint_dialect import Dialect
from memory_env.query.answer.endpoint_errors import (
    KEY_VARIABLE,
    URL_VARIABLE,
    EndpointUnusable,
    Failure,
    answered_failure,
    connection_reason,
    first_line,
    parameter_of,
)
from memory_env.query.answer.endpoint_response import Failed, Refused, Unusable, completion_text_of, json_objects
from memory_env.query.answer.endpoint_settings import EndpointSettings, check_address
from memory_env.query.answer.response_cache import ResponseCache
from memory_env.query.answer.token_usage import TokenLedger
from memory_env.query.protocol import JudgeError, StageError, WriteError

__all__ = ["KEY_VARIABLE", "URL_VARIABLE", "EndpointClient", "EndpointSettings", "EndpointUnusable"]

T = TypeVar("T")
Messages = Sequence[Mapping[str, str]]
_CHECK_TIMEOUT_S = 10.0
# An endpoint that has answered nothing so far is given up after so many requests that were each tried to their deadline.
_MOST_FAILED_AT_FIRST = 8


class EndpointClient:
    """Thread-safe. `complete` returns the parsed JSON object that `accept` accepted, from the cache or from the endpoint.

    Retried with exponential backoff, honouring Retry-After: 408, 409, 425, 429, 5xx, broken and hung connections, and responses
    that are empty, truncated (with twice the tokens) or malformed. A parameter that the server refuses by name is changed once,
    and the change is remembered. A refusal, another 4xx, or an exhausted deadline raises JudgeError (WriteError for the stage
    "write"); a wrong key, model or address, a spent quota, or nothing but failures from the start raises
    EndpointUnusable. The key appears in no message, log, cache or repr.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        cache: ResponseCache | None = None,
        ledger: TokenLedger | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._key = os.environ.get(KEY_VARIABLE, "")
        base_url = settings.base_url or os.environ.get(URL_VARIABLE) or None
        if not self._key and base_url is None:
            raise DataError(f"set {KEY_VARIABLE} in the environment, or a base URL of a server that needs no key")
        if base_url is not None:
            check_address(base_url)
        import openai

        self._openai = openai
        self.settings = settings
        self.ledger = ledger or TokenLedger()
        self._cache, self._sleep, self._clock = cache, sleep, clock
        self._client = openai.OpenAI(api_key=self._key or "none", base_url=base_url, max_retries=0)
        self.url = str(self._client.base_url).rstrip("/")
        self._slots = threading.BoundedSemaphore(settings.concurrency)
        self._dialect, self._dialect_lock = Dialect(), threading.Lock()
        self._answered, self._given_up = False, 0
        self._asking: dict[str, threading.Lock] = {}
        self._asking_lock = threading.Lock()

    def __repr__(self) -> str:
        return f"EndpointClient({self.settings.model})"

    def check(self) -> EndpointClient:
        """One quick request without a model, before work starts. EndpointUnusable where no server answers or the key is refused.

        A server need not list its models: whatever else it says counts as being there.
        """
        try:
            self._client.with_options(timeout=_CHECK_TIMEOUT_S).models.list()
        except self._openai.APIStatusError as error:
            if error.status_code in (401, 403):
                raise EndpointUnusable(self._unusable(answered_failure(error))) from None
        except self._openai.APIConnectionError as error:
            reason = self._without_key(connection_reason(error))
            raise EndpointUnusable(f"{self.url}: no server answers ({reason}); check the address") from None
        except (self._openai.OpenAIError, ValueError):
            pass  # an answer of another shape is an answer
        return self

    def complete(
        self,
        stage: str,
        messages: Messages,
        accept: Callable[[dict[str, Any]], T],
        question_id: str = "",
        schema: Mapping[str, Any] | None = None,
    ) -> T:
        """`accept` of the response's JSON object; `accept` raises ValueError for one it can't use, which asks again.

        `schema` is the JSON schema of a response, for servers that want one.
        """
        key = self._cache_key(stage, messages)
        with self._once(key):
            found = self._cache.get(key) if self._cache else None
            if found is not None:
                with suppress(ValueError):  # a response that an older version accepted is asked for anew
                    value = accept(json.loads(found["text"]))
                    self.ledger.add(stage, found["input_tokens"], found["output_tokens"], cached=True)
                    return value

            def read(text: str, finish: str) -> tuple[T, str]:
                if finish == "length":
                    raise Unusable("truncated by the token limit", truncated=True)
                return _accepted(text, accept)

            def build(dialect: Dialect, max_tokens: int) -> dict[str, Any]:
                return dialect.request(messages, max_tokens, self.settings.json_mode, schema)

            limit = self.settings.request_timeout_s
            value, response = self._ask(stage, build, read, question_id, self.settings.max_tokens, limit)
            if self._cache:
                self._cache.put(key, response)
            self.ledger.add(stage, response["input_tokens"], response["output_tokens"])
            return value

    def text(
        self,
        stage: str,
        messages: Messages,
        max_tokens: int,
        question_id: str = "",
        extra: Mapping[str, Any] | None = None,
    ) -> tuple[str, bool, int, int]:
        """(the completion as it is, whether `max_tokens` cut it off, tokens of the prompt, tokens of the completion).

        For a trained model, whose malformed output is an output: no JSON mode, nothing is repaired, asked again for what it says,
        or cached, and special tokens stay visible. A long output may take the whole deadline. Raises like `complete`.

        extra: further fields of the request, for servers that know them (vLLM's chat_template_kwargs).
        """

        def read(text: str, finish: str) -> tuple[tuple[str, bool], str]:
            return (text, finish == "length"), text

        def build(dialect: Dialect, limit: int) -> dict[str, Any]:
            return dialect.request(messages, limit, extra={"skip_special_tokens": False, **(extra or {})})

        value, response = self._ask(stage, build, read, question_id, max_tokens, self.settings.deadline_s)
        self.ledger.add(stage, response["input_tokens"], response["output_tokens"])
        return (*value, response["input_tokens"], response["output_tokens"])

    def _ask(
        self,
        stage: str,
        build: Callable[[Dialect, int], dict[str, Any]],
        read: Callable[[str, str], tuple[T, str]],
        question_id: str,
        max_tokens: int,
        request_limit_s: float,
    ) -> tuple[T, dict[str, Any]]:
        """The value of a response and its record; `read(text, finish reason)` gives the value and the text to keep."""

        def failed(reason: str, refused: bool) -> StageError:
            kind = WriteError if stage == "write" else JudgeError
            return kind(self._without_key(reason), stage=stage, question_id=question_id, refused=refused)

        end = self._clock() + self.settings.deadline_s
        last, unusable_text = "no attempt was made", False
        for attempt in range(self.settings.max_attempts):
            remaining = end - self._clock()
            if remaining <= 0:
                break
            wait: float | None = None
            try:
                with self._slots:
                    response = self._request(build, max_tokens, min(request_limit_s, remaining))
                value, text = read(*completion_text_of(response))
                self._answered = True
                return value, self._record(stage, response, text)
            except Unusable as error:
                last, unusable_text = str(error), True
                max_tokens *= 2 if error.truncated else 1
            except Refused as error:
                raise failed(str(error), refused=True) from None
            except Failed as error:
                last, wait, unusable_text = str(error.failure), error.failure.wait, False
                self._stop_unless_passing(error.failure, failed)
            except self._openai.APIStatusError as error:
                failure = answered_failure(error)
                last, wait, unusable_text = str(failure), failure.wait, False
                self._stop_unless_passing(failure, failed)
            except self._openai.OpenAIError as error:  # broken or hung connection
                last, unusable_text = f"{self.url}: {connection_reason(error)}", False
            except ValueError as error:  # a body of status 200 that is no JSON
                last, unusable_text = f"{self.url}: {first_line(str(error))}", True
            pause = self._pause(attempt) if wait is None else wait
            if attempt + 1 < self.settings.max_attempts:
                if self._clock() + pause >= end:
                    last += f"; the next try would pass the deadline of {self.settings.deadline_s:g} s"
                    break
                self._sleep(pause)
        self._given_up += 1
        if not self._answered and self._given_up >= _MOST_FAILED_AT_FIRST:
            reason = self._without_key(f"gave up on the first {self._given_up} requests, last: {last}")
            raise EndpointUnusable(reason if self.url in reason else f"{self.url}: {reason}")
        raise failed(f"gave up after repeated attempts, last: {last}", refused=unusable_text)

    def _stop_unless_passing(self, failure: Failure, failed: Callable[[str, bool], StageError]) -> None:
        if failure.unusable:
            raise EndpointUnusable(self._unusable(failure)) from None
        if not failure.passing:
            raise failed(str(failure), True) from None

    def _request(self, build: Callable[[Dialect, int], dict[str, Any]], max_tokens: int, timeout: float) -> Any:
        """A response. A parameter that the server refuses is changed, for this request and for those after it."""
        while True:
            dialect = self._dialect
            try:
                return self._client.chat.completions.create(
                    model=self.settings.model, timeout=timeout, **build(dialect, max_tokens)
                )
            except self._openai.APIStatusError as error:
                # A dialect only ever gives up parameters, so this ends.
                other = dialect.without(f"{answered_failure(error).reason} {parameter_of(error.body)}", error.status_code)
                if other is None:
                    raise
                with self._dialect_lock:
                    if self._dialect == dialect:
                        self._dialect = other

    def _unusable(self, failure: Failure) -> str:
        return self._without_key(f"{self.url}: {failure}; check {KEY_VARIABLE}, the model's name and the base URL")

    def _record(self, stage: str, response: Any, text: str) -> dict[str, Any]:
        usage = getattr(response, "usage", None)
        return {
            "stage": stage,
            "text": text,
            "model": getattr(response, "model", "") or "",
            "input_tokens": getattr(usage, "prompt_tokens", 0) or 0,
            "output_tokens": getattr(usage, "completion_tokens", 0) or 0,
        }

    def _cache_key(self, stage: str, messages: Messages) -> str:
        identity = {"stage": stage, "messages": [dict(message) for message in messages], **self.settings.identity}
        identity["base_url"] = str(self._client.base_url)
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    @contextmanager
    def _once(self, key: str) -> Iterator[None]:
        """Equal requests wait for each other, so that the second finds the first one's response in the cache."""
        with self._asking_lock:
            lock = self._asking.setdefault(key, threading.Lock())
        try:
            with lock:
                yield
        finally:
            with self._asking_lock:
                self._asking.pop(key, None)

    def _pause(self, attempt: int) -> float:
        ceiling = min(self.settings.backoff_limit_s, self.settings.backoff_s * 2**attempt)
        return ceiling * random.uniform(0.5, 1.0)

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


def _accepted(text: str, accept: Callable[[dict[str, Any]], T]) -> tuple[T, str]:
    """The first JSON object of a text that `accept` accepts, and its JSON. Unusable where there is none."""
    reason = f"not JSON: {first_line(text)[:60]!r}" if text.strip() else "the response is empty"
    for place, body in enumerate(json_objects(text)):
        try:
            return accept(body), json.dumps(body, ensure_ascii=False)
        except ValueError as error:
            reason = str(error) if not place else reason
    raise Unusable(reason)
