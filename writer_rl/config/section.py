"""The base of every configuration section, and the types its fields share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

ROOT = Path(__file__).resolve().parents[2]
"""The repository root: relative paths in a configuration start here."""

CORPUS_NAMES = ("corpus:train", "corpus:heldout", "corpus:validation", "corpus:practice")
"""Data sources that name the embedded corpus instead of a path."""


class Section(BaseModel):
    """A frozen group of settings that refuses unknown keys. The string under a field is its help text."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        coerce_numbers_to_str=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _check_corpus_name(source: str) -> str:
    if source.startswith("corpus:") and source not in CORPUS_NAMES:
        raise ValueError(f"unknown corpus {source!r}; there are {', '.join(CORPUS_NAMES)}")
    return source


Source = Annotated[str, AfterValidator(_check_corpus_name)]
"""A file or folder of networks, or a corpus name."""

Sources = Annotated[tuple[Source, ...], BeforeValidator(_as_list)]
"""One source or several."""

Paths = Annotated[tuple[str, ...], BeforeValidator(_as_list)]
"""One path or several."""


def resolve(path: str) -> Path:
    """`path` as an absolute path; a relative one starts at the repository root.

    Example: ``resolve("configs/demo.yaml")`` is the shipped file from whatever folder Python was started in.
    """
    return ROOT / Path(path).expanduser()
