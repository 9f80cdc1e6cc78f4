"""The shell commands of README and docs, as a reader would type them.

A block that is meant to be typed is fenced as ``sh`` (every line a command) or ``console`` (lines after ``$`` are commands, the
rest is what they printed). A comment above the block says where it can't run whole:

    <!-- test: dry -->                     with --dry-run, or its options held against --help
    <!-- test: skip, needs two GPUs -->    not at all, and why
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\s*$")
DIRECTIVE = re.compile(r"^<!-- test: (?P<mode>dry|skip), ?(?P<reason>.+) -->$|^<!-- test: (?P<plain>dry) -->$")
RUNNERS = ("python", "make", "accelerate", "torchrun", "writer-rl", "vllm", "pip")
"""What begins a command of this project's documents, after settings of the environment."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a page.

    Example: ``Command("docs/data.md", 93, "python launch/plan.py", mode="whole", reason="")``; mode: whole, dry or skip.
    """

    page: str
    line: int
    text: str
    mode: str
    reason: str


def commands(page: Path, name: str) -> list[Command]:
    """Every command of the page's `sh` and `console` blocks, in order. ValueError for a comment that is no directive."""
    found: list[Command] = []
    language, mode, reason, pending = None, "whole", "", ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if fence and language is None:
            language = fence.group(1)
        elif fence:
            language, mode, reason, pending = None, "whole", "", ""
        elif language is None:
            if line.startswith("<!-- test:"):
                directive = DIRECTIVE.match(line)
                if directive is None:
                    raise ValueError(f"{name}:{number}: {line}: write <!-- test: dry --> or <!-- test: skip, REASON -->")
                mode, reason = directive.group("mode") or directive.group("plain"), directive.group("reason") or ""
            elif line.strip():
                mode, reason = "whole", ""
        elif language in ("sh", "console"):
            text = pending + line.strip()
            if not pending and language == "console":
                if not line.startswith("$ "):
                    continue
                text = line[2:].strip()
            pending = f"{text[:-1].rstrip()} " if text.endswith("\\") else ""
            text = re.sub(r"\s+# .*$", "", text)
            if not pending and text and not text.startswith("#"):
                found.append(Command(name, number, text, mode, reason))
    return found


def files(page: Path) -> dict[str, str]:
    """The page's Python blocks that begin with ``# NAME.py``, by name: the files that its commands use."""
    blocks = re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return dict(blocks)


def untagged(page: Path) -> list[int]:
    """Lines of blocks with another tag that look like commands: nobody would run them."""
    language, found = None, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if fence:
            language = None if language is not None else fence.group(1)
        elif language not in (None, "sh", "console"):
            words = [word for word in line.removeprefix("$ ").split() if "=" not in word]
            if words and words[0] in RUNNERS and len(words) > 1 and language != "python":
                found.append(number)
    return found
