"""What an endpoint's failure means: try again, change the request, or stop and say why."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"

_RETRIED_STATUS = frozenset({408, 409, 425, 429})
_UNUSABLE_STATUS = frozenset({401, 402, 403, 404})
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "credits_exhausted"})
_QUOTA_WORDS = re.compile(
    r"exceeded your (?:current|monthly) quota|insufficient (?:quota|credits?|funds|balance)"
    r"|(?:credit|quota)s? (?:is |are )?exhausted|check your plan and billing",
    re.IGNORECASE,
)
_PASSES = re.compile(r"per[- ](?:minute|second|hour|day)|retry in|retrydelay|try again (?:in|later)", re.IGNORECASE)


class Response(Protocol):
    """Of the library's response, what is read of one with an error status."""

    text: str
    reason_phrase: str
    headers: Mapping[str, str]


class StatusError(Protocol):
    """Of the library's error for a status of 400 or more, what is read."""

    status_code: int
    body: object
    response: Response


class EndpointUnusable(RuntimeError):
    """The endpoint will refuse every request (wrong key, unknown model, wrong address, spent quota): the run stops, nothing is
    scored."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed request: `status` (0 for a broken connection or a response that can't be used) and the server's own `reason`.

    `unusable`: no request can succeed. `passing`: the same request may succeed later. Neither: this request is refused.
    `wait`: seconds the server asks for, None where it does not say.

    Example:
        Failure(429, "You exceeded your current quota.", unusable=True)
    """

    status: int
    reason: str
    unusable: bool = False
    passing: bool = False
    wait: float | None = None

    def __str__(self) -> str:
        return f"HTTP {self.status}: {self.reason}" if self.status else self.reason


def failure_of(status: int, body: Any, headers: Mapping[str, str]) -> Failure:
    """The failure that a status and an error body (parsed JSON, or text) tell of."""
    reason, code = reason_of(body), _code_of(body)
    wait = retry_after(headers)
    spent = code in _QUOTA_CODES or (_QUOTA_WORDS.search(reason) and wait is None and not _PASSES.search(_flat(body)))
    if status in _UNUSABLE_STATUS or (status == 429 and spent):
        return Failure(status, reason, unusable=True)
    return Failure(status, reason, passing=status in _RETRIED_STATUS or status >= 500, wait=wait)


def failure_inside(body: Any) -> Failure | None:
    """The failure that a response of status 200 holds in its `error` field; None where it holds none."""
    if not body:
        return None
    code = body.get("code", body.get("status")) if isinstance(body, Mapping) else None
    status = int(code) if isinstance(code, int | str) and str(code).isdigit() and 400 <= int(code) < 600 else 0
    if not status:
        return Failure(0, reason_of(body), passing=True)
    return failure_of(status, body, {})


def reason_of(body: Any) -> str:
    """The server's own words in an error body, one line of at most 300 characters; "" where it has none.

    Example: reason_of({"error": {"message": "no such model"}}) == "no such model".
    """
    if isinstance(body, list):
        return first_line("; ".join(reason_of(each) for each in body))
    if not isinstance(body, Mapping):
        return first_line(str(body or ""))
    for field in ("error", "detail", "message", "msg"):
        value = body.get(field)
        if not value:
            continue
        if isinstance(value, str):
            where = ".".join(str(part) for part in body.get("loc", ())) if field == "msg" else ""
            return first_line(f"{where}: {value}" if where else value)
        return reason_of(value)
    return first_line(json.dumps(body, ensure_ascii=False))


def _code_of(body: Any) -> str:
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping):
            return str(inner.get("code") or inner.get("type") or "")
    return ""


def parameter_of(body: Any) -> str:
    """The parameter that an error body names apart from its words; "" where it names none."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping):
            return str(inner.get("param") or "")
    return ""


def _flat(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body, default=str)


def retry_after(headers: Mapping[str, str]) -> float | None:
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


def first_line(text: str) -> str:
    """The first line of a text that is not empty, at most 300 characters."""
    return next((line.strip() for line in str(text).splitlines() if line.strip()), "")[:300]


def answered_failure(error: StatusError) -> Failure:
    """What an answer with an error status means."""
    body = error.body or error.response.text or error.response.reason_phrase
    return failure_of(error.status_code, {"error": body} if isinstance(body, Mapping) else body, error.response.headers)


def connection_reason(error: BaseException) -> str:
    """The innermost reason of a broken connection, which the library wraps in "Connection error."."""
    while error.__cause__ is not None:
        error = error.__cause__
    return first_line(str(error)) or type(error).__name__
