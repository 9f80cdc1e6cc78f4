"""Chat completions from an OpenAI-compatible endpoint: bounded, patient, cached, and never silently wrong."""

from __future__ import annotations

import email.utils
import hashlib
import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from memory_env.datafile import DataError
from memory_env.query.answer.response_cache import ResponseCache
from memory_env.query.answer.token_usage import TokenLedger
from memory_env.query.protocol import JudgeError

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
_FENCE = re.compile(r"^\s*```(?:json)?\s*\n(?P<body>.*?)\n?```\s*$", re.DOTALL)
_RETRIED_STATUS = frozenset({408, 409, 425, 429})
_UNUSABLE_STATUS = frozenset({401, 403, 404})


class EndpointUnusable(RuntimeError):
    """The endpoint will refuse every request (wrong key, unknown model, wrong address): the run stops, nothing is scored."""


class _Rejected(Exception):
    """A response that can't be used as it is; asking again may help."""


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Which model answers, and how patiently it is asked. The key is read from the environment alone and never kept here.

    `deadline_s` bounds one question with all its retries, `request_timeout_s` one request. Sampling is greedy.
    """

    model: str
    base_url: str | None = None
    concurrency: int = 8
    deadline_s: float = 300.0
    request_timeout_s: float = 60.0
    max_attempts: int = 8
    backoff_s: float = 0.5
    backoff_limit_s: float = 30.0
    max_tokens: int = 1024
    json_mode: bool = True

    def __post_init__(self) -> None:
        if not self.model:
            raise DataError("the endpoint backend needs a model name (reward.qa.model or evaluation.model)")

    @property
    def identity(self) -> dict[str, Any]:
        """What determines a response besides the messages."""
        kept = ("model", "max_tokens", "json_mode")
        return {name: value for name, value in asdict(self).items() if name in kept} | {"base_url": self.base_url or ""}


class EndpointClient:
    """Thread-safe. `complete` returns the parsed JSON object that `accept` accepted, from the cache or from the endpoint.

    Retried with exponential backoff, honouring Retry-After: 408, 409, 425, 429, 5xx, broken and hung connections, and responses
    that are empty, truncated (with twice the tokens) or malformed. A refusal, another 4xx, or an exhausted deadline raises
    JudgeError; a wrong key, model or address raises EndpointUnusable. The key appears in no message, log, cache or repr.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        cache: ResponseCache | None = None,
        ledger: TokenLedger | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ):
        import openai

        self._openai = openai
        self._key = os.environ.get(KEY_VARIABLE, "")
        base_url = settings.base_url or os.environ.get(URL_VARIABLE) or None
        if not self._key and base_url is None:
            raise DataError(f"set {KEY_VARIABLE} in the environment, or a base URL of a server that needs no key")
        self.settings = settings
        self.ledger = ledger or TokenLedger()
        self._cache, self._sleep, self._clock = cache, sleep, clock
        self._client = openai.OpenAI(api_key=self._key or "none", base_url=base_url, max_retries=0)
        self._slots = threading.BoundedSemaphore(settings.concurrency)
        self._asking: dict[str, threading.Lock] = {}
        self._asking_lock = threading.Lock()

    def __repr__(self) -> str:
        return f"EndpointClient({self.settings.model})"

    def complete(
        self, stage: str, messages: Sequence[Mapping[str, str]], accept: Callable[[dict[str, Any]], Any], question_id: str = ""
    ) -> Any:
        """`accept` of the response's JSON object; `accept` raises ValueError for one it can't use, which asks again."""
        key = self._cache_key(stage, messages)
        with self._once(key):
            found = self._cache.get(key) if self._cache else None
            if found is not None:
                with suppress(ValueError):  # a response that an older version accepted is asked for anew
                    value = accept(json.loads(found["text"]))
                    self.ledger.add(stage, found["input_tokens"], found["output_tokens"], cached=True)
                    return value

            def read(response: Any) -> tuple[Any, str]:
                body = self._body(response)
                return accept(body), json.dumps(body, ensure_ascii=False)

            options = {"response_format": {"type": "json_object"}} if self.settings.json_mode else {}
            limit = self.settings.request_timeout_s
            value, response = self._ask(stage, messages, read, question_id, self.settings.max_tokens, options, limit)
            if self._cache:
                self._cache.put(key, response)
            self.ledger.add(stage, response["input_tokens"], response["output_tokens"])
            return value

    def text(self, stage: str, messages: Sequence[Mapping[str, str]], max_tokens: int, question_id: str = "") -> tuple[str, bool]:
        """(the completion as it is, whether `max_tokens` cut it off).

        For a trained model, whose malformed output is an output: no JSON mode, nothing is repaired, asked again for what it says,
        or cached, and special tokens stay visible. A long output may take the whole deadline. Raises like `complete`.
        """

        def read(response: Any) -> tuple[tuple[str, bool], str]:
            choice = self._choice(response)
            text = choice.message.content or ""
            return (text, choice.finish_reason == "length"), text

        options = {"extra_body": {"skip_special_tokens": False}}
        value, response = self._ask(stage, messages, read, question_id, max_tokens, options, self.settings.deadline_s)
        self.ledger.add(stage, response["input_tokens"], response["output_tokens"])
        return value

    def _ask(
        self,
        stage: str,
        messages: Sequence[Mapping[str, str]],
        read: Callable[[Any], tuple[Any, str]],
        question_id: str,
        max_tokens: int,
        options: Mapping[str, Any],
        request_limit_s: float,
    ) -> tuple[Any, dict[str, Any]]:
        """The value of a response and its record; `read(response)` gives the value and the text to keep."""
        end = self._clock() + self.settings.deadline_s
        last = "no attempt was made"
        for attempt in range(self.settings.max_attempts):
            remaining = end - self._clock()
            if remaining <= 0:
                break
            wait: float | None = None
            try:
                with self._slots:
                    response = self._request(messages, max_tokens, min(request_limit_s, remaining), options)
                value, text = read(response)
                return value, self._record(stage, response, text)
            except (_Rejected, ValueError) as error:
                last = str(error)
                if last.startswith("truncated"):
                    max_tokens *= 2
            except _Refused as error:
                raise JudgeError(str(error), stage=stage, question_id=question_id) from None
            except self._openai.APIStatusError as error:
                last = self._without_key(f"HTTP {error.status_code}: {_first_line(error.message)}")
                if error.status_code in _UNUSABLE_STATUS:
                    raise EndpointUnusable(f"{last}; check {KEY_VARIABLE}, the model's name and the base URL") from None
                if error.status_code not in _RETRIED_STATUS and error.status_code < 500:
                    raise JudgeError(last, stage=stage, question_id=question_id) from None
                wait = _retry_after(error.response.headers)
            except self._openai.OpenAIError as error:  # broken or hung connection
                last = self._without_key(f"{type(error).__name__}: {_first_line(str(error))}")
            pause = self._pause(attempt) if wait is None else wait
            if attempt + 1 < self.settings.max_attempts:
                if self._clock() + pause >= end:
                    last += f"; the next try would pass the deadline of {self.settings.deadline_s:g} s"
                    break
                self._sleep(pause)
        raise JudgeError(f"gave up after repeated attempts, last: {last}", stage=stage, question_id=question_id)

    def _request(self, messages: Sequence[Mapping[str, str]], max_tokens: int, timeout: float, options: Mapping[str, Any]) -> Any:
        return self._client.chat.completions.create(
            model=self.settings.model,
            messages=[dict(message) for message in messages],
            temperature=0,
            max_tokens=max_tokens,
            timeout=timeout,
            **options,
        )

    def _choice(self, response: Any) -> Any:
        """The first choice of a response; _Refused for a refusal, _Rejected without any."""
        choices = getattr(response, "choices", None)
        if not choices:
            raise _Rejected("the response has no choices")
        message, reason = choices[0].message, choices[0].finish_reason
        if getattr(message, "refusal", None) or reason == "content_filter":
            raise _Refused(f"the model refused: {_first_line(getattr(message, 'refusal', None) or 'content filter')}")
        return choices[0]

    def _body(self, response: Any) -> dict[str, Any]:
        """The JSON object of a response; _Rejected for one that holds none."""
        choice = self._choice(response)
        if choice.finish_reason == "length":
            raise _Rejected("truncated by the token limit")
        text = choice.message.content or ""
        fence = _FENCE.match(text)
        try:
            body = json.loads(fence["body"] if fence else text)
        except (ValueError, RecursionError):
            raise _Rejected(f"not JSON: {text[:60]!r}") from None
        if not isinstance(body, dict):
            raise _Rejected(f"not a JSON object: {text[:60]!r}")
        return body

    def _record(self, stage: str, response: Any, text: str) -> dict[str, Any]:
        usage = getattr(response, "usage", None)
        return {
            "stage": stage,
            "text": text,
            "model": getattr(response, "model", "") or "",
            "input_tokens": getattr(usage, "prompt_tokens", 0) or 0,
            "output_tokens": getattr(usage, "completion_tokens", 0) or 0,
        }

    def _cache_key(self, stage: str, messages: Sequence[Mapping[str, str]]) -> str:
        identity = {"stage": stage, "messages": [dict(message) for message in messages], **self.settings.identity}
        identity["base_url"] = str(self._client.base_url)
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    @contextmanager
    def _once(self, key: str):
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


class _Refused(Exception):
    """The model declined to answer."""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of a Retry-After header (a number or a date), None without one."""
    if "retry-after-ms" in headers:
        try:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        except ValueError:
            return None
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        date = email.utils.parsedate_tz(value)
        return max(0.0, email.utils.mktime_tz(date) - time.time()) if date else None


def _first_line(text: str) -> str:
    return next((line.strip() for line in str(text).splitlines() if line.strip()), "")[:200]
