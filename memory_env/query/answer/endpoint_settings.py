"""Which model behind which address answers, and how patiently it is asked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from memory_env.datafile import DataError


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
    def identity(self) -> dict[str, str | int | bool]:
        """What determines a response besides the messages."""
        kept = ("model", "max_tokens", "json_mode")
        return {name: value for name, value in asdict(self).items() if name in kept} | {"base_url": self.base_url or ""}


def check_address(url: str) -> None:
    """DataError for what is no http address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise DataError(f"base URL {url!r}: must begin with http:// or https://, like http://localhost:8000/v1")
