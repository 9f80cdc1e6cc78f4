"""The whole evaluation: every Writer writes, every question is answered and judged, tables and files are made.

Everything that is known is on the disk at once, so the same command continues an interrupted run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from tqdm import tqdm

from memory_env import Network
from memory_env.datafile import DataError
from memory_env.files import write_text
from memory_env.query.answer.response_cache import ResponseCache
from memory_env.query.answer.token_usage import StageUsage, table_row
from memory_env.query.budgets import QueryBudgets
from memory_env.query.pipeline import QueryPipeline
from memory_env.text import json_utf8
from writer_rl.config import EvaluationConfig
from writer_rl.evaluation import report
from writer_rl.evaluation.answering import Examiner, Place, ResultFile
from writer_rl.evaluation.asking import Asking, budgets_of, open_asking
from writer_rl.evaluation.frozen import frozen_hashes, require_equal
from writer_rl.evaluation.memories import MemoryFile, WrittenMemory
from writer_rl.evaluation.memory_metrics import memory_metrics
from writer_rl.evaluation.plot import plot_grid
from writer_rl.evaluation.reward_notes import reward_notes
from writer_rl.evaluation.scores import Result, summary
from writer_rl.evaluation.setup import CACHE_FILE, dense_available, judging_line, networks_of
from writer_rl.evaluation.variants import MAIN, Variant, ablations, baselines, full_evidence, grid, main_variant
from writer_rl.evaluation.writers import NOBODY, TEACHER, Writer, WriterSpec, open_writer, write_networks
from writer_rl.train.data import with_teachers

FROZEN_FILE = "frozen.json"


class Unjudged(RuntimeError):
    """Some questions could not be judged: no table is made of the rest."""


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """What to evaluate. `tables` of "ablations", "grid", "full_evidence", "baselines"; `networks` (paths) overrides the
    configured ones.
    """

    writers: tuple[WriterSpec, ...]
    tables: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()


@dataclass(slots=True)
class Outcome:
    """`documents` by file name (as written), and the tables as printed."""

    documents: dict[str, Mapping[str, object]] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)


def evaluate(config: EvaluationConfig, plan: EvaluationPlan, output: Path) -> Outcome:
    """Runs, or continues, an evaluation in `output`.

    Files: evaluation.json, questions.jsonl (every answer with its verdict), memories.jsonl (every output of every
    Writer), memory.json (metrics against the teacher, where there is one), and ablations.json, grid.json with grid.png,
    full_evidence.json, baselines.json.

    Raises FrozenError where `output` holds results under other conditions, DataError for bad input, TooManyFailures or
    Unjudged when the backend fails (run again to continue), EndpointUnusable when it can't work at all.
    """
    names = [spec.name for spec in plan.writers]
    if not names or len(set(names)) < len(names):
        raise DataError("--writer: every row needs a name of its own" if names else "--writer: name at least one")
    judging = judging_line(config)
    networks = networks_of(config, plan.networks)
    output.mkdir(parents=True, exist_ok=True)
    asking = open_asking(config.evaluation, "evaluation", output / CACHE_FILE)
    budgets = budgets_of(config.evaluation)
    main = main_variant(budgets)
    frozen = frozen_hashes(networks, asking.pipeline(), asking.backend.answerer, asking.backend.judge)
    _claim(output, frozen)
    run = _Run(config, asking, networks, output)
    outcome, total = Outcome(), sum(len(network.questions) for network in networks)

    # All are opened before the first writes: a wrong path of the last one should not show up after hours.
    client = partial(asking.client, max_tokens=max(1024, config.rollout.max_new_tokens))
    writers = {spec.name: [open_writer(source, config, client, networks) for source in spec.sources] for spec in plan.writers}
    notes = reward_notes(writers, config)
    print(*[judging, *notes], sep="\n", file=sys.stderr)
    memories = {name: run.memories(name, seeds) for name, seeds in writers.items()}
    rows = [report.WriterRow(writer=name, **summary(run.results(main, name, memories[name]))) for name in names]
    document = report.evaluation_document(total, frozen, rows, notes)
    outcome.documents["evaluation.json"] = document
    outcome.tables += [report.writer_table(document), report.category_table(document)]
    _write_json(output / "evaluation.json", document)

    metrics = run.memory_metrics(memories)
    if metrics:
        outcome.documents["memory.json"] = metrics
        outcome.tables.append(report.memory_table(metrics))
        _write_json(output / "memory.json", metrics)
    for name in plan.tables:
        variants, text = run.table(name, _variants(name, budgets), _of_table(name, memories), frozen, total)
        outcome.documents[f"{name}.json"] = variants
        outcome.tables.append(text)
        _write_json(output / f"{name}.json", variants)
    usage = ResponseCache(output / CACHE_FILE).usage() if (output / CACHE_FILE).is_file() else {}
    tokens = token_rows(memories, usage, total)
    if tokens:
        outcome.tables.append(report.token_table(tokens))
        stages = {stage: asdict(used) for stage, used in usage.items()}
        _write_json(output / "tokens.json", {"stages": stages, "table": tokens})
    return outcome


def token_rows(
    memories: Mapping[str, Sequence[Sequence[WrittenMemory]]], usage: Mapping[str, StageUsage], questions: int
) -> dict[str, dict[str, float]]:
    """Rows like those of the paper's Tables 9-12: what each local or served Writer's first seed ingested, and all cached calls.

    Questions are answered for all Writers together and equal evidence once, so that only the last row counts answering.
    """
    rows = {}
    for name, seeds in memories.items():
        outputs = [step.output for memory in seeds[0] for step in memory.steps]
        counted = [(each.prompt_tokens, each.tokens) for each in outputs if each.prompt_tokens is not None]
        if counted:
            written = StageUsage(len(counted), 0, sum(read for read, _ in counted), sum(made or 0 for _, made in counted))
            rows[f"{name} (ingest)"] = table_row({"write": written}, questions)
    return rows | ({"all calls": table_row(usage, questions)} if usage else {})


class _Run:
    """One evaluation in progress."""

    def __init__(self, config: EvaluationConfig, asking: Asking, networks: Sequence[Network], output: Path):
        self._config, self._asking, self._networks = config, asking, networks
        self._memory_file = MemoryFile(output / "memories.jsonl")
        self._result_file = ResultFile(output / "questions.jsonl")
        self._output = output
        backend = asking.backend
        self._examiner = Examiner(backend.answerer, backend.judge, asking.concurrency, config.evaluation.max_failure_rate)

    def memories(self, name: str, writers: Sequence[Writer]) -> list[list[WrittenMemory]]:
        """The memories of each seed, in the networks' order; what is on file is replayed instead of written again."""
        return [self._seed_memories(name, seed, writer) for seed, writer in enumerate(writers)]

    def _seed_memories(self, name: str, seed: int, writer: Writer) -> list[WrittenMemory]:
        identity = writer.identity
        written = {
            network.network_id: found
            for network in self._networks
            if (found := self._memory_file.get(name, seed, identity, network)) is not None
        }
        todo = [network for network in self._networks if network.network_id not in written]
        data, concurrency = self._config.data, self._config.evaluation.concurrency
        if todo:
            with self._bar(len(todo), f"{name}, seed {seed}: writing", "network") as bar, closing(writer):
                for network, completions in write_networks(writer, todo, data, concurrency):
                    self._memory_file.add(name, seed, identity, network, completions)
                    written[network.network_id] = completions
                    bar.update()
        return [WrittenMemory.of(network, written[network.network_id], data.window, data.strict) for network in self._networks]

    def results(self, variant: Variant, name: str, memories: Sequence[Sequence[WrittenMemory]]) -> list[list[Result]]:
        """Results of each seed. Raises Unjudged when questions are left without a verdict."""
        pipeline, found = self._pipeline(variant), []
        for seed, written in enumerate(memories):
            total = sum(len(network.questions) for network in self._networks)
            label = f"{name}, seed {seed}: answering" + ("" if variant.table == MAIN else f" ({variant.name})")
            with self._bar(total, label, "question") as bar:
                place = Place(variant.key, name, seed)
                results, failures = self._examiner.examine(
                    place, pipeline, self._networks, written, self._result_file, bar.update
                )
            if failures:
                raise Unjudged(
                    f"{len(failures)} of {total} questions of {name} could not be judged, last: {failures[-1]}; "
                    f"the rest is kept in {self._output}, the same command asks them again"
                )
            found.append(results)
        return found

    def table(
        self,
        name: str,
        variants: Sequence[Variant],
        memories: Mapping[str, list[list[WrittenMemory]]],
        frozen: Mapping[str, str],
        total: int,
    ) -> tuple[report.VariantDocument, str]:
        rows = []
        for writer, written in memories.items():
            for variant in variants:
                backend = self._asking.backend
                own = frozen_hashes(self._networks, self._pipeline(variant), backend.answerer, backend.judge)
                scores = summary(self.results(variant, writer, written))
                budgets, prompts = own["budgets"], own["prompts"]
                rows.append(report.VariantRow(variant=variant.name, writer=writer, budgets=budgets, prompts=prompts, **scores))
        document = report.variant_document(total, frozen, rows)
        if name == "grid" and plot_grid(rows, self._output / "grid.png"):
            document["plot"] = "grid.png"
        first = {"ablations": "Ablation", "grid": "Budgets", "full_evidence": "Evidence", "baselines": "Baseline"}[name]
        totals = report.variant_table(document, first, "full, no ASK" if name == "ablations" else None)
        return document, f"{totals}\n\n{report.variant_category_table(document, first)}"

    def memory_metrics(self, memories: Mapping[str, list[list[WrittenMemory]]]) -> dict[str, dict[str, Any]]:
        """Means over seeds per Writer, and under `seeds` what each had; nothing where a network has no teacher."""
        try:
            teachers = {known.network.network_id: known.teacher for known in with_teachers(self._networks, self._config.data)}
        except DataError:
            return {}
        questions = {network.network_id: network.questions for network in self._networks}
        found = {}
        for name, seeds in memories.items():
            measured = [memory_metrics(written, teachers, questions) for written in seeds]
            shared = [key for key in measured[0] if all(key in each for each in measured)]
            found[name] = {key: fmean(each[key] for each in measured) for key in shared} | {"seeds": measured}
        return found

    def _pipeline(self, variant: Variant) -> QueryPipeline:
        return self._asking.pipeline(variant.budgets, variant.dense)

    def _bar(self, total: int, label: str, unit: str) -> tqdm:
        seconds = 0.2 if sys.stderr.isatty() else 30.0  # a log gets a line now and then, and none for what is quick
        options = {"disable": not self._config.tracking.progress, "leave": False, "mininterval": seconds, "delay": seconds}
        return tqdm(total=total, desc=label, unit=unit, **options)


def _variants(table: str, budgets: QueryBudgets) -> list[Variant]:
    if table == "ablations":
        return ablations(budgets)
    if table == "grid":
        return grid(budgets)
    if table == "full_evidence":
        return full_evidence()
    return baselines(budgets, dense_available())


def _of_table(table: str, memories: Mapping[str, list[list[WrittenMemory]]]) -> dict[str, list[list[WrittenMemory]]]:
    """The grid is over one fixed memory, the first trained Writer's first seed (the teacher's holds so much that its grid is
    flat); baselines read no derived memory, so one is enough too.
    """
    writers = {name: seeds for name, seeds in memories.items() if name != NOBODY} or dict(memories)
    if table in ("ablations", "full_evidence"):
        return writers
    trained = {name: seeds for name, seeds in writers.items() if name != TEACHER} or writers
    name, seeds = next(iter(trained.items()))
    return {("messages alone" if table == "baselines" else name): seeds[:1]}


def _claim(output: Path, frozen: Mapping[str, str]) -> None:
    """The first run in a folder fixes its conditions; a later one has to have the same."""
    path = output / FROZEN_FILE
    if path.exists():
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise DataError(f"{path}: not JSON; name another output folder") from None
        require_equal(frozen, known, str(output))
    else:
        _write_json(path, dict(frozen))


def _write_json(path: Path, value: object) -> None:
    write_text(path, json_utf8(value, indent=1).decode() + "\n")
