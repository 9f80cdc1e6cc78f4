"""Controls: rows beside SFT and RL, read from a file, and the one document that holds what came of all of them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from writer_rl.evaluation.paired import Pair
    from writer_rl.evaluation.run_records import RunRecord

SFT, RL = "SFT", "RL"
FIXED = (SFT, "teacher", "none")
"""Rows of every table that are no training run of their own."""
_NAME = r"[\w.][\w. -]*"


class RowError(ValueError):
    """A row that can't be run; the message says what to write."""


@dataclass(frozen=True)
class ControlRow:
    """One training run per seed. settings: what it changes, {SFT} and {RL} for the seed's checkpoint and run; gets: what it is
    given beside or short of RL, in words.

    Example: ControlRow("no chain", ("--reward.weights", "{state: 1.0, chain: 0.0}")).
    """

    name: str
    settings: tuple[str, ...] = ()
    script: Literal["grpo", "sft"] = "grpo"
    gets: str = ""

    @property
    def folder(self) -> str:
        """Of its run, within the seed's.

        >>> ControlRow("RL").folder, ControlRow("no chain").folder
        ('grpo', 'no-chain')
        """
        return "grpo" if self.name == RL else self.name.replace(" ", "-")

    def arguments(self, sft: str, rl: str) -> list[str]:
        """The settings for one seed.

        >>> ControlRow("longer", ("--model.path", "{SFT}")).arguments("runs/sft", "runs/grpo")
        ['--model.path', 'runs/sft']
        """
        return [each.replace("{SFT}", sft).replace("{RL}", rl) for each in self.settings]


def parse_row(text: str) -> ControlRow:
    """A row as it is named on the command line. RowError for another form.

    >>> parse_row("no chain=--reward.weights.chain 0")
    ControlRow(name='no chain', settings=('--reward.weights.chain', '0'), script='grpo', gets='')
    """
    name, equals, settings = text.partition("=")
    if not equals or not re.fullmatch(_NAME, name.strip()) or not settings.lstrip().startswith("--"):
        raise RowError(f"--row {text}: write NAME=--section.key value, with a name of letters, digits, spaces, points and dashes")
    try:
        return ControlRow(name.strip(), tuple(shlex.split(settings)))
    except ValueError as error:
        raise RowError(f"--row {text}: {error}") from None


def read_rows(text: str) -> list[ControlRow]:
    """The rows of FILE, or of one group of it (FILE:GROUP). RowError or DataError, with the file and the row at fault."""
    import yaml  # here, so that --help stays fast

    from memory_env.datafile import DataError, read_text

    path, _, group = text.partition(":")
    if not Path(path).is_file():
        raise DataError(f"{path}: is no file; name one such as configs/controls.yaml")
    try:
        document = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        raise DataError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict) or (group and group not in document):
        known = ", ".join(map(str, document)) if isinstance(document, dict) else "none"
        raise RowError(f"{text}: no group of that name; {path} has {known}")
    rows = []
    for name in [group] if group else document:
        entries = document[name] or []
        if not isinstance(entries, list):
            raise RowError(f"{path}: {name}: a group is a list of rows, each with name and settings")
        rows += [_row(entry, f"{path}: {name}[{place}]") for place, entry in enumerate(entries)]
    return rows


def _row(entry: object, where: str) -> ControlRow:
    """One entry of a group. RowError, with `where`, for one that is no row."""
    if not isinstance(entry, dict) or set(entry) - {"name", "settings", "script", "gets"} or "name" not in entry:
        raise RowError(f"{where}: give name, settings, and where they are needed script (grpo or sft) and gets")
    name, script, settings, gets = (entry.get(key, "") for key in ("name", "script", "settings", "gets"))
    if script not in ("", "grpo", "sft") or not re.fullmatch(_NAME, str(name)):
        raise RowError(f"{where}: script is grpo or sft, a name has letters, digits, spaces, points and dashes")
    if not isinstance(settings, str) or not isinstance(gets, str) or not re.match(r"\s*(--|$)", settings):
        raise RowError(f"{where}: settings are one text of --section.key value, gets is a text")
    try:
        return ControlRow(str(name), tuple(shlex.split(settings)), script or "grpo", gets)
    except ValueError as error:
        raise RowError(f"{where}: settings: {error}") from None


def pairs_of(folder: Path) -> list[Pair]:
    """Of an evaluation: every trained row against SFT, and every row but RL against RL."""
    from writer_rl.evaluation.paired import paired, read_verdicts

    verdicts = read_verdicts(folder)
    rows = [name for name in verdicts if name not in FIXED]
    wanted = [(SFT, name) for name in rows if SFT in verdicts] + [(RL, name) for name in rows if name != RL and RL in verdicts]
    return [paired(first, second, verdicts[first], verdicts[second]) for first, second in wanted]


def results_document(
    rows: Sequence[ControlRow],
    seeds: Sequence[int],
    evaluations: Mapping[str, Path],
    costs: Mapping[str, Mapping[str, float]],
    runs: Sequence[RunRecord] = (),
) -> dict[str, Any]:
    """results.json: the rows with their settings, what each cost, every run's configuration and hashes, and of every set the
    table, the memory figures and the pairs.

    evaluations: set -> the evaluation's folder; costs: row -> CPU seconds and the like, summed over the seeds.
    """
    sets = {}
    for name, folder in evaluations.items():
        memory = folder / "memory.json"
        sets[name] = {
            **json.loads((folder / "evaluation.json").read_text(encoding="utf-8")),
            "memory": json.loads(memory.read_text(encoding="utf-8")) if memory.is_file() else {},
            "pairs": [asdict(pair) for pair in pairs_of(folder)],
        }
    return {
        "seeds": list(seeds),
        "rows": [{**asdict(row), "settings": shlex.join(row.settings), "cost": costs.get(row.name, {})} for row in rows],
        "runs": [asdict(run) for run in runs],
        "sets": sets,
    }


def results_table(document: Mapping[str, Any]) -> str:
    """One line a row: accuracy on every set, the paired difference to SFT with its interval, what it cost, what it got."""
    from writer_rl.evaluation.report import table

    known = {row["name"]: row for row in document["rows"]}
    sets = document["sets"]
    header = ["Writer", *(part for name in sets for part in (f"{name} (%)", "vs. SFT")), "CPU s", "tokens", "gets"]
    lines = []
    for writer in [row["writer"] for row in next(iter(sets.values()))["rows"]]:
        cells = [writer]
        for each in sets.values():
            row = next(row for row in each["rows"] if row["writer"] == writer)
            pair = next((p for p in each["pairs"] if (p["first"], p["second"]) == (SFT, writer)), None)
            cells += [f"{row['accuracy_mean']:.2f}", _difference(pair)]
        cost = known.get(writer, {}).get("cost", {})
        cells += [_count(cost.get("cpu_seconds")), _count(cost.get("tokens")), known.get(writer, {}).get("gets", "")]
        lines.append(cells)
    return table(header, lines, left=(0, len(header) - 1))


def _difference(pair: Mapping[str, Any] | None) -> str:
    if pair is None:
        return "-"
    bounds = "" if pair["interval"] is None else f" [{pair['interval'][0]:+.1f}, {pair['interval'][1]:+.1f}]"
    return f"{pair['difference']:+.2f}{bounds}"


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
