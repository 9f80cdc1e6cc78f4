"""From a YAML file and command-line overrides to a checked configuration, or to one line that says what is wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, overload

import yaml
from pydantic import BaseModel, ValidationError

from writer_rl.config.kinds import KINDS, EvaluationConfig, GRPOConfig, SFTConfig, SharedConfig
from writer_rl.config.section import ROOT, SECRET

NOT_YAML = (yaml.YAMLError, ValueError, RecursionError)
"""What the YAML parser raises; ValueError for bytes that are no text and for tags such as `!!int word`."""


class ConfigError(ValueError):
    """One line that names the file or argument, the key and the remedy; scripts exit with 2."""


@overload
def load_config(kind: Literal["sft"], path: str | Path | None = None, overrides: Sequence[str] = ()) -> SFTConfig: ...


@overload
def load_config(kind: Literal["grpo"], path: str | Path | None = None, overrides: Sequence[str] = ()) -> GRPOConfig: ...


@overload
def load_config(kind: Literal["evaluate"], path: str | Path | None = None, overrides: Sequence[str] = ()) -> EvaluationConfig: ...


@overload
def load_config(kind: str, path: str | Path | None = None, overrides: Sequence[str] = ()) -> SharedConfig: ...


def load_config(kind: str, path: str | Path | None = None, overrides: Sequence[str] = ()) -> SharedConfig:
    """The configuration of `kind` ("sft", "grpo" or "evaluate").

    Built in this order, later over earlier: defaults; the top level of the YAML file at `path` (None: no file), which every
    kind shares; the file's block named like the kind, so that one file can serve all scripts; `overrides`.

    overrides: what follows the script's own options, e.g. ``["--trainer.lr", "1e-4", "--seed=3"]``. Values are YAML
    (``null``, ``[a, b]``), plain words are strings.

    Raises ConfigError for a missing file, bad YAML, an unknown key (with the nearest valid one) or an impossible value.

    Example: with ``seed: 1`` and ``grpo: {trainer: {lr: 1e-4}}`` in the file, ``load_config("grpo", path)`` has both, and
    ``load_config("sft", path)`` has the seed.
    """
    config_type = KINDS[kind]
    tree: dict[str, Any] = {}
    if path is not None:
        tree = _for_kind(_read(_find(path)), kind, str(path))
        _check_keys(tree, config_type, str(path))
    for key, value in parse_overrides(overrides):
        _check_keys(_nest(key, value), config_type, "command line")
        tree = _merge(tree, _nest(key, value))
    try:
        return config_type.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(_explain(error, overrides, path)) from None


def parse_overrides(arguments: Sequence[str]) -> list[tuple[str, Any]]:
    """``["--a.b", "1", "--c=x"]`` as ``[("a.b", "1"), ("c", "x")]``; ConfigError on anything else."""
    pairs: list[tuple[str, Any]] = []
    rest = list(arguments)
    while rest:
        option = rest.pop(0)
        if not option.startswith("--") or len(option) < 3:
            raise ConfigError(f"command line: expected --section.key, got {option!r}")
        key, equals, text = option[2:].partition("=")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise ConfigError(f"command line: --{key} needs a value")
            text = rest.pop(0)
        pairs.append((key, _value(text, key)))
    return pairs


def config_keys(config_type: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """Every settable key of a configuration type: (dotted key, default, help text), in order of definition."""
    for name, field in config_type.model_fields.items():
        section = _section_of(field.annotation)
        if section is not None:
            yield from config_keys(section, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field.default, field.description or ""


def help_text(kind: str) -> str:
    """Every key of a kind with its default and meaning, for ``--help``."""
    lines = [f"  --{key} ({_show(default)})\n      {text}" for key, default, text in config_keys(KINDS[kind])]
    return "settings (default):\n" + "\n".join(lines)


def to_yaml(config: SharedConfig) -> str:
    """The resolved configuration as YAML that `load_config` reads back to an equal one."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


class _UniqueKeyLoader(yaml.SafeLoader):
    """SafeLoader keeps the last of two equal keys without a word; this one refuses them. A date stays the text it is."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a word", problem_mark=key_node.start_mark)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} appears twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _find(path: str | Path) -> Path:
    given = Path(path).expanduser()
    for candidate in (given, ROOT / given):
        if candidate.is_file():
            return candidate
    raise ConfigError(f"{path}: no such configuration file; the shipped ones are in configs/")


def _read(path: Path) -> dict[str, Any]:
    try:
        tree = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)
    except NOT_YAML as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ConfigError(f"{place}: not valid YAML: {getattr(error, 'problem', None) or type(error).__name__}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: expected sections such as `trainer:`, got a {type(tree).__name__}")
    return tree


def _for_kind(tree: dict[str, Any], kind: str, where: str) -> dict[str, Any]:
    shared = {key: value for key, value in tree.items() if key not in KINDS}
    block = tree.get(kind)
    if block is not None and not isinstance(block, dict):
        raise ConfigError(f"{where}: {kind}: expected sections such as `trainer:`, got {block!r}")
    if kind == "evaluate":
        shared.pop("trainer", None)  # evaluate.py takes a training run's own config.yaml as it is
    return _merge(shared, block or {})


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _nest(key: str, value: Any) -> dict[str, Any]:
    for part in reversed(key.split(".")):
        value = {part: value}
    return value


def _value(text: str, key: str) -> Any:
    """Lists, mappings and null as YAML says; a number stays text, which pydantic reads by the field's own type."""
    try:
        value = yaml.load(text, Loader=_UniqueKeyLoader)
    except NOT_YAML:
        if text[:1] in "[{":
            raise ConfigError(f"command line: --{key}: not valid YAML: {text}") from None
        return text
    return value if isinstance(value, (list, dict)) or (value is None and text) else text


def _section_of(annotation: Any) -> type[BaseModel] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _check_keys(tree: dict, config_type: type[BaseModel], where: str, prefix: str = "") -> None:
    for name, value in tree.items():
        key = f"{prefix}{name}"
        field = config_type.model_fields.get(name) if isinstance(name, str) else None
        if field is None:
            raise ConfigError(f"{where}: unknown key {key!r}{_nearest(key, config_type, prefix)}")
        section = _section_of(field.annotation)
        if section is None:
            _check_items(value, field.annotation, where, key)
            continue
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: {key}: is a section; set one of its keys, e.g. {key}.{_first(section)}")
        _check_keys(value, section, where, f"{key}.")


def _check_items(value: object, annotation: Any, where: str, key: str) -> None:
    """The keys of sections in a list, e.g. the stages of a curriculum."""
    section = next(filter(None, map(_section_of, get_args(annotation))), None)
    for index, item in enumerate(value if section is not None and isinstance(value, list) else ()):
        if isinstance(item, dict) and section is not None:
            _check_keys(item, section, where, f"{key}.{index}.")


def _first(section: type[BaseModel]) -> str:
    return next(iter(section.model_fields))


def _nearest(key: str, config_type: type[BaseModel], prefix: str) -> str:
    """The nearest key of the same section, else the nearest of all by its last part."""
    if re.search("api_?key|token$|secret|password", key, re.IGNORECASE):
        return "; a key is no setting: it comes from the environment (OPENAI_API_KEY, WANDB_API_KEY) alone"
    local = [f"{prefix}{name}" for name in config_type.model_fields]
    close = difflib.get_close_matches(key, local, n=1, cutoff=0.6)
    if not close:
        everywhere = {k for kind in KINDS.values() for k, _, _ in config_keys(kind)}
        last = key.rsplit(".", 1)[-1]
        close = sorted(k for k in everywhere if k.rsplit(".", 1)[-1] == last)[:1]
        close = close or difflib.get_close_matches(key, sorted(everywhere), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(local)}"


def _explain(error: ValidationError, overrides: Sequence[str], path: str | Path | None) -> str:
    first = error.errors()[0]
    parts: list[str] = []
    for part in first["loc"]:
        if isinstance(part, int):
            parts.append(str(part))
        elif part.isidentifier():
            parts.append(part)
        else:
            break
    key = ".".join(parts)
    from_arguments = any(key == k or key.startswith(f"{k}.") for k, _ in parse_overrides(overrides))
    where = "command line" if from_arguments or path is None else str(path)
    message = first["msg"].removeprefix("Value error, ")
    message = f"{where}: {key}: {message[:1].lower()}{message[1:]}"
    if first["type"] == SECRET:
        return message
    remedy = "; no value is written null" if first["input"] in ("none", "None") else ""
    return f"{message}, got {first['input']!r}{remedy}"


def _show(default: object) -> str:
    if isinstance(default, tuple):
        return "[" + ", ".join(map(str, default)) + "]"
    return "null" if default is None else str(default)


__all__ = [
    "ConfigError",
    "config_keys",
    "help_text",
    "load_config",
    "parse_overrides",
    "to_yaml",
]
