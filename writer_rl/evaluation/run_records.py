"""What is kept of a training run beside its figures, so that a published table can be held against a run made again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_env.datafile import DataError, read_text


@dataclass(frozen=True)
class RunRecord:
    """One trained Writer: its configuration, and the checkpoint that stands for it.

    checkpoint: the folder's name; validation: what it was chosen by, e.g. {"evaluation/question_score": 0.674}, empty where
    nothing was evaluated; weights: SHA-256 of the model's file; configuration: the text of config.yaml, folders made relative.

    Example: RunRecord("RL", 0, "000020", {"evaluation/question_score": 0.674}, "9f1c...", "seed: 0\\n...").
    """

    writer: str
    seed: int
    checkpoint: str
    validation: Mapping[str, float]
    weights: str
    configuration: str


def run_record(writer: str, seed: int, run: Path, model: Path, folders: Sequence[Path]) -> RunRecord:
    """The record of `run`, whose Writer is the folder `model` (RUN/checkpoints/NAME/model). folders: what paths are made relative
    to, in this order. DataError where the run has no configuration or the model no weights."""
    import yaml  # here, so that --help stays fast

    text = read_text(run / "config.yaml")
    metric = yaml.safe_load(text)["evaluation"]["metric"]
    for folder in folders:
        text = text.replace(f"{folder}/", "")
    checkpoint = model.parent.name
    found = {}
    for line in read_text(run / "metrics.jsonl").splitlines():
        record = json.loads(line)
        if checkpoint.isdecimal() and record["round"] == int(checkpoint) and record.get(metric) is not None:
            found = {metric: float(record[metric])}
    return RunRecord(writer, seed, checkpoint, found, weights_digest(model), text)


def weights_digest(model: Path) -> str:
    """SHA-256 over a model folder's weight files, in the order of their names. DataError where it has none."""
    files = sorted(file for file in model.iterdir() if file.suffix == ".safetensors")
    if not files:
        raise DataError(f"{model}: no .safetensors file in it; name a model folder")
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()
