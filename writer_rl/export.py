"""A checkpoint as a plain Hugging Face folder: weights, tokenizer, chat template, generation config, prompt and a model card."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import SafetensorError

from rollout.completion import stop_token_ids
from writer_rl.checkpoint import CheckpointError, find_checkpoint, read_state
from writer_rl.config import resolve
from writer_rl.engines import DEFAULT_PROMPT

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
PROMPT_NAME = "prompt"
"""The prompt file is copied under this name, its suffix kept."""
WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")


class ExportError(ValueError):
    """A checkpoint or folder that can't be exported; one line with the remedy."""


@dataclass(frozen=True)
class Source:
    """Where a trained Writer lies: its Hugging Face folder and the run directory it came from, if there is one.

    Example: ``Source(model=runs/demo/grpo/checkpoints/000060/model, run=runs/demo/grpo)``.
    """

    model: Path
    run: Path | None


def find_source(checkpoint: Path) -> Source:
    """The Writer that `checkpoint` names: a checkpoint, a run directory (its newest), or a folder such as a run's final/.

    Raises CheckpointError where there is none.
    """
    if any((checkpoint / name).is_file() for name in WEIGHT_FILES):
        parent = checkpoint.resolve().parent
        return Source(checkpoint, parent if (parent / "config.yaml").is_file() else None)
    found = find_checkpoint(checkpoint)
    read_state(found)  # complete, and of a format that this version knows
    if not any((found / "model" / name).is_file() for name in WEIGHT_FILES):
        raise CheckpointError(f"{found}: holds no model/ with safetensors; it is incomplete, name another checkpoint")
    run = found.resolve().parent.parent
    return Source(found / "model", run if (run / "config.yaml").is_file() else None)


def export_checkpoint(checkpoint: Path, output: Path, dtype: str | None = None, prompt: Path | None = None) -> Path:
    """Write the Writer of `checkpoint` to the new folder `output`, whole or not at all; returns `output`.

    dtype: float32, bfloat16 or float16; None keeps the checkpoint's. prompt: the prompt file it was trained with; None: the one
    that the run's config.yaml names. Weights are the checkpoint's bit by bit where the dtype is kept; tied ones are written once.

    Raises ExportError or CheckpointError for what the user can mend.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ExportError(f"{output}: is not empty; name a new folder")
    if dtype is not None and dtype not in DTYPES:
        raise ExportError(f"dtype {dtype}: choose one of {', '.join(DTYPES)}")
    source = find_source(checkpoint)
    settings = _settings(source)
    prompt = prompt or _prompt_of(settings)
    if not prompt.is_file():
        raise ExportError(f"{prompt}: no such prompt file; name it with --prompt")
    model, tokenizer = _load(source.model, dtype)
    draft = output.with_name(f".{output.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    model.save_pretrained(draft)
    tokenizer.save_pretrained(draft)
    shutil.copyfile(prompt, draft / f"{PROMPT_NAME}{prompt.suffix}")
    card = model_card(output.name, model, settings, _evaluation(source), prompt.suffix)
    for file in draft.iterdir():
        file.chmod(0o644)  # safetensors writes files that only their owner may read
    (draft / "README.md").write_text(card, encoding="utf-8")
    if output.is_dir():
        output.rmdir()
    draft.rename(output)
    return output


def model_card(name: str, model: Any, settings: Mapping[str, Any], evaluation: Mapping[str, Any] | None, suffix: str) -> str:
    """README.md: what the model is, what it was trained on and how, how well it does, and how to run it."""
    trainer, data = settings.get("trainer", {}), settings.get("data", {})
    stages = [stage["name"] for stage in trainer.get("curriculum") or ()]
    facts = {
        "architecture": type(model).__name__,
        "parameters": f"{sum(p.numel() for p in model.parameters()):,}",
        "dtype": str(model.dtype).removeprefix("torch."),
        "start": _start(settings.get("model", {})),
        "training": _method(trainer) if trainer else None,
        "stages": ", ".join(stages) or None,
        "training networks": ", ".join(data.get("train") or ()) if not stages else "embedded corpus, generated",
        "learning rate": trainer.get("lr"),
        "optimizer": trainer.get("optimizer"),
        "group size": settings.get("rollout", {}).get("group_size") if "kl_coef" in trainer else None,
        "seed": settings.get("seed"),
    }
    rows = "\n".join(f"| {key} | {value} |" for key, value in facts.items() if value is not None)
    return (
        "---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags: [memory, group-chat]\n---\n"
        f"# {name}\n\n"
        "A Writer: it reads one segment of a group chat with the memory so far, and answers with the actions "
        '(ADD, UPDATE, NOOP) that bring the memory up to date, as JSON `{"actions": [...]}`.\n\n'
        f"| | |\n| --- | --- |\n{rows}\n\n"
        f"## Evaluation\n\n{_results(evaluation)}\n\n"
        f"## Use\n\nThe prompt it was trained with is `{PROMPT_NAME}{suffix}`; render it with the segment and memory, put it "
        "through the tokenizer's chat template, and generate greedily until a stop token:\n\n"
        "```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        'tokenizer = AutoTokenizer.from_pretrained(".")\nmodel = AutoModelForCausalLM.from_pretrained(".")\n```\n'
    )


def _load(folder: Path, dtype: str | None) -> tuple[Any, Any]:
    os.environ.setdefault("DS_ACCELERATOR", "cpu")  # transformers imports DeepSpeed, which else warns about it
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=DTYPES[dtype] if dtype else "auto")
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise ExportError(f"{folder}: can't be loaded: {first}") from None
    stops = sorted(stop_token_ids(tokenizer, model.config, model.generation_config))
    model.generation_config.eos_token_id = stops if len(stops) > 1 else stops[0]
    model.generation_config.pad_token_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else stops[0]
    model.generation_config.do_sample = False
    for name in ("temperature", "top_p", "top_k"):  # of no effect in greedy decoding, and warned about
        setattr(model.generation_config, name, None)
    return model, tokenizer


def _settings(source: Source) -> dict[str, Any]:
    """The run's config.yaml, {} where the Writer comes from no run."""
    if source.run is None:
        return {}
    try:
        return yaml.safe_load((source.run / "config.yaml").read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError) as error:
        raise ExportError(f"{source.run / 'config.yaml'}: can't be read: {(str(error).splitlines() or ['?'])[0]}") from None


def _prompt_of(settings: Mapping[str, Any]) -> Path:
    named = settings.get("data", {}).get("prompt")
    return resolve(named) if named else DEFAULT_PROMPT


def _evaluation(source: Source) -> dict[str, Any] | None:
    file = source.run / "evaluation.json" if source.run else None
    if file is None or not file.is_file():
        return None
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        raise ExportError(f"{file}: not valid JSON; remove it or evaluate again") from None


def _start(model: Mapping[str, Any]) -> str | None:
    if not model:
        return None
    return "random weights" if model.get("init") == "random" else model.get("path")


def _method(trainer: Mapping[str, Any]) -> str:
    return "position-aligned GRPO" if "kl_coef" in trainer else "supervised fine-tuning on teacher trajectories"


def _results(evaluation: Mapping[str, Any] | None) -> str:
    if not evaluation or not evaluation.get("rows"):
        return "None recorded with this checkpoint; `python launch/evaluate.py` measures it."
    header = ["| Writer | accuracy % | token-F1 % | MeanQ | MeanN |", "| --- " * 5 + "|"]
    lines = [f"{evaluation.get('total', '?')} questions.", "", *header]
    for row in evaluation["rows"]:
        figures = (row.get(key) for key in ("accuracy_mean", "token_f1_mean", "mean_q", "mean_n"))
        lines.append(f"| {row['writer']} | " + " | ".join("-" if f is None else f"{f:.2f}" for f in figures) + " |")
    return "\n".join(lines)
