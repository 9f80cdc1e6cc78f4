"""The base of every configuration section, and the types its fields share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from memory_env.default_prompts import PROMPTS

_ABOVE = Path(__file__).resolve().parents[2]

ROOT = _ABOVE if (_ABOVE / "pyproject.toml").is_file() else Path.cwd()
"""Where relative paths in a configuration start: the repository root, or, installed without a checkout, the working folder."""

DEFAULT_PROMPT = PROMPTS / "writer.jinja"
"""The prompt file of a Writer that names none."""

CORPUS_NAMES = ("corpus:train", "corpus:heldout", "corpus:unseen", "corpus:validation", "corpus:practice")
"""Data sources that name the embedded corpus instead of a path; corpus:practice-45 is the first 45 of corpus:practice."""
PRACTICE = re.compile(r"corpus:practice-([1-9]\d{0,2})")


class SettingsSection(BaseModel):
    """A frozen group of settings that refuses unknown keys. The string under a field is its help text."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        coerce_numbers_to_str=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )

    @field_validator("*", mode="before")
    @classmethod
    def _booleans_are_no_numbers(cls, value: Any, info: ValidationInfo) -> Any:
        """YAML reads a bare yes, no, on or off as a boolean, and pydantic would take true for 1."""
        wanted = cls.model_fields[str(info.field_name)].annotation
        if any(kind in (bool, Any) for kind in (wanted, *get_args(wanted))) or (
            isinstance(wanted, type) and issubclass(wanted, SettingsSection)
        ):
            return value
        if value is False and "off" in get_args(wanted):
            return "off"
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        if any(isinstance(part, bool) for part in parts):
            raise ValueError("is no yes/no setting (YAML reads a bare yes, no, on or off as one: quote the word)")
        return value


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _without_secret(address: str) -> str:
    parts = urlsplit(address)
    if parts.username or parts.password:
        # The address would stand in config.yaml and in W&B; the message leaves it out too.
        raise PydanticCustomError(
            SECRET, "holds a password, and settings are written to the run directory; put the address into OPENAI_BASE_URL"
        )
    return address


SECRET = "secret"
"""The type of an error whose input must not be shown."""

Text = Annotated[str, StringConstraints(min_length=1)]
"""A string that says something."""

Address = Annotated[str, AfterValidator(_without_secret)]
"""A URL without user and password."""


def _check_corpus_name(source: str) -> str:
    if source.startswith("corpus:") and source not in CORPUS_NAMES and not PRACTICE.fullmatch(source):
        raise ValueError(f"unknown corpus {source!r}; there are {', '.join(CORPUS_NAMES)} and corpus:practice-<number>")
    return source


Source = Annotated[Text, AfterValidator(_check_corpus_name)]
"""A file or folder of networks, or a corpus name."""

Sources = Annotated[tuple[Source, ...], BeforeValidator(_as_list)]
"""One source or several."""

Paths = Annotated[tuple[Text, ...], BeforeValidator(_as_list)]
"""One path or several."""


def resolve(path: str) -> Path:
    """`path` as an absolute path; a relative one starts at `ROOT`.

    Example: ``resolve("configs/demo.yaml")`` is the shipped file from whatever folder Python was started in.
    """
    return ROOT / Path(path).expanduser()
