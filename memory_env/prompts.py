"""Prompt files and their rendering: an observation becomes chat messages in which data can't pose as structure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from memory_env.datafile import DataError, read_text
from memory_env.observation import Observation
from memory_env.text import break_control_tokens, one_line

_SECTION = re.compile(r"^--- (system|user) ---[ \t]*$")
_FIELD = re.compile(r"\{([a-z_]+)\}")
# A memory line reads "owner | ... | content | id": content may not bring fields of its own.
_FIELD_SEPARATOR = re.compile(r"\s+[|\uff5c]\s+")


@dataclass(frozen=True)
class PromptSection:
    """One chat message of a prompt file: its role, its source, and the line of the file it starts at."""

    role: str
    source: str
    first_line: int


@dataclass(frozen=True)
class PromptTemplate:
    """A prompt file. A line `--- system ---` or `--- user ---` starts a section; text before the first is the system
    message if a user section follows, else the file is one user message.

    Files that end in `.jinja` or `.j2` are Jinja templates (sandboxed; an unknown name is an error) over `roster` (names),
    `messages` (speaker, ts, content), `heads` (entry_id, owner, source, layer, utype, content), `budget` and
    `omitted_heads`. In any other file `{roster}`, `{messages}`, `{heads}`, `{budget}` and `{omitted_heads}` are replaced
    by rendered text and every other brace stands for itself.

    `sha256` is the hash of the file's bytes: equal prompts have equal hashes.
    """

    path: str
    sections: tuple[PromptSection, ...]
    sha256: str
    is_jinja: bool

    @classmethod
    def load(cls, path: str | Path) -> PromptTemplate:
        """Read and check a prompt file. Raises DataError naming file and line."""
        text = read_text(path)
        sections = _split(text, str(path))
        template = cls(
            path=str(path),
            sections=sections,
            sha256=hashlib.sha256(Path(path).read_bytes()).hexdigest(),
            is_jinja=Path(path).suffix in (".jinja", ".j2"),
        )
        if template.is_jinja:
            for section in sections:
                template._compiled(section)
        return template

    def render(self, observation: Observation, control_tokens: Iterable[str] = ()) -> list[dict[str, str]]:
        """Chat messages `[{"role", "content"}, ...]`. Raises DataError if the template fails.

        Every text of the observation is put on one line, and chat-template markers in it are broken: the generic ones
        and `control_tokens`, the special tokens of the tokenizer that will read the prompt.
        """
        safe = _escaper(tuple(control_tokens))
        values = _values(observation, safe)
        return self.fill(values if self.is_jinja else _plain_values(values))

    def fill(self, values: Mapping[str, Any]) -> list[dict[str, str]]:
        """Chat messages of a prompt file about anything but an observation; `values` are used as they are, unescaped.

        In a plain file a list is one item a line. Raises DataError if the template fails.
        """
        return [{"role": section.role, "content": self._fill(section, values)} for section in self.sections]

    def _fill(self, section: PromptSection, values: Mapping[str, Any]) -> str:
        if not self.is_jinja:
            return _FIELD.sub(lambda match: _plain(values.get(match.group(1), match.group())), section.source).strip()
        template = self._compiled(section)
        try:
            return template.render(values).strip()
        except Exception as error:  # a template is user input: whatever it does wrong is reported in one line
            line = _template_line(error) + section.first_line - 1
            raise DataError(f"{self.path}, line {line}: {error or type(error).__name__}; mend the template") from None

    def _compiled(self, section: PromptSection) -> jinja2.Template:
        try:
            return _compile(section.source)
        except jinja2.TemplateSyntaxError as error:
            line = error.lineno + section.first_line - 1
            raise DataError(f"{self.path}, line {line}: {error.message}; mend the template") from None


_JINJA = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
_compile = lru_cache(maxsize=64)(_JINJA.from_string)


def _split(text: str, path: str) -> tuple[PromptSection, ...]:
    lines = text.replace("\r\n", "\n").split("\n")
    starts = [(number, match.group(1)) for number, line in enumerate(lines) if (match := _SECTION.match(line))]
    if not starts:
        starts = [(-1, "user")]
    elif any(line.strip() for line in lines[: starts[0][0]]):
        if starts[0][1] == "system":
            raise DataError(f"{path}, line {starts[0][0] + 1}: text stands before the system section; move it into one")
        starts.insert(0, (-1, "system"))
    roles = [role for _, role in starts]
    if roles not in (["user"], ["system", "user"]):
        line = starts[-1][0] + 1
        raise DataError(f"{path}, line {line}: sections are {', '.join(roles)}; write one system, then one user section")
    ends = [number for number, _ in starts[1:]] + [len(lines)]
    sections = tuple(
        PromptSection(role, "\n".join(lines[number + 1 : end]), number + 2)
        for (number, role), end in zip(starts, ends, strict=True)
    )
    for section in sections:
        if not section.source.strip():
            raise DataError(f"{path}, line {section.first_line}: the {section.role} section is empty")
    return sections


def _template_line(error: BaseException) -> int:
    line = 1
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == "<template>":
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _escaper(control_tokens: tuple[str, ...]) -> Callable[[str], str]:
    return lambda text: break_control_tokens(one_line(text), control_tokens)


def _values(observation: Observation, safe: Callable[[str], str]) -> dict[str, Any]:
    return {
        "roster": [safe(name) for name in observation.roster],
        "messages": [
            {"speaker": safe(message.speaker), "ts": safe(message.ts), "content": safe(message.content)}
            for message in observation.messages
        ],
        "heads": [
            {
                "entry_id": head.entry_id,
                "owner": safe(head.owner),
                "source": safe(head.source),
                "layer": head.layer,
                "utype": head.utype,
                "content": _FIELD_SEPARATOR.sub(" / ", safe(head.content)),
            }
            for head in observation.heads
        ],
        "budget": observation.budget,
        "omitted_heads": observation.omitted_heads,
    }


def _plain(value: object) -> str:
    return "\n".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _plain_values(values: Mapping[str, Any]) -> dict[str, str]:
    messages = (f"{message['speaker']} @ {message['ts']}: {message['content']}" for message in values["messages"])
    heads = (
        f"{head['owner']} | {head['source']} | {head['layer']} | {head['content']} | {head['entry_id']}"
        for head in values["heads"]
    )
    return {
        "roster": ", ".join(values["roster"]),
        "messages": "\n".join(messages),
        "heads": "\n".join(heads) or "(empty)",
        "budget": str(values["budget"]),
        "omitted_heads": str(values["omitted_heads"]),
    }
