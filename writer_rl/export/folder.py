"""A checkpoint as a plain Hugging Face folder: weights, tokenizer, chat template, generation config, prompt and a model card.

A Writer that was trained through an adapter is merged, or its adapter is exported apart, in peft's format.
"""

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
from safetensors.torch import load_file, save_file

from memory_env.files import new_folder
from rollout.completion import stop_token_ids
from writer_rl.config import DEFAULT_PROMPT, resolve
from writer_rl.export.card import model_card
from writer_rl.model.lora import ADAPTER, ADAPTER_CONFIG, ADAPTER_WEIGHTS
from writer_rl.train.checkpoint import CheckpointError, find_checkpoint, read_state

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
PROMPT_NAME = "prompt"
"""The prompt file is copied under this name, its suffix kept."""
WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")


class ExportError(ValueError):
    """A checkpoint or folder that can't be exported; one line with the remedy."""


@dataclass(frozen=True)
class TrainedWriter:
    """Where a trained Writer lies: its Hugging Face folder and the run directory it came from, if there is one.

    Example: ``TrainedWriter(model=runs/demo/grpo/checkpoints/000060/model, run=runs/demo/grpo)``.
    """

    model: Path
    run: Path | None


def find_source(checkpoint: Path) -> TrainedWriter:
    """The Writer that `checkpoint` names: a checkpoint, a run directory (its newest), or a folder such as a run's final/.

    Raises CheckpointError where there is none.
    """
    if any((checkpoint / name).is_file() for name in WEIGHT_FILES):
        parent = checkpoint.resolve().parent
        return TrainedWriter(checkpoint, parent if (parent / "config.yaml").is_file() else None)
    found = find_checkpoint(checkpoint)
    read_state(found)  # complete, and of a format that this version knows
    if not any((found / "model" / name).is_file() for name in WEIGHT_FILES):
        raise CheckpointError(f"{found}: holds no model/ with safetensors; it is incomplete, name another checkpoint")
    run = found.resolve().parent.parent
    return TrainedWriter(found / "model", run if (run / "config.yaml").is_file() else None)


def export_checkpoint(
    checkpoint: Path, output: Path, dtype: str | None = None, prompt: Path | None = None, adapter: bool = False
) -> Path:
    """Write the Writer of `checkpoint` to the new folder `output`, whole or not at all; returns `output`.

    dtype: float32, bfloat16 or float16; None keeps the checkpoint's. prompt: the prompt file it was trained with; None: the one
    that the folder carries, else the one that the run's config.yaml names. Weights are the checkpoint's bit by bit where the
    dtype is kept; tied ones are written once. adapter: the adapter alone instead, which `PeftModel.from_pretrained` puts on its
    base.

    Raises ExportError or CheckpointError for what the user can mend.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ExportError(f"{output}: is not empty; name a new folder")
    if dtype is not None and dtype not in DTYPES:
        raise ExportError(f"dtype {dtype}: choose one of {', '.join(DTYPES)}")
    source = find_source(checkpoint)
    settings = _settings(source)
    prompt = prompt or _prompt_of(source, settings)
    if not prompt.is_file():
        raise ExportError(f"{prompt}: no such prompt file; name it with --prompt")
    if adapter and not (source.model / ADAPTER).is_dir():
        raise ExportError(f"{source.model}: has no adapter: all weights were trained (model.lora.rank 0); leave --adapter away")
    model, tokenizer = _load(source.model, dtype)
    with new_folder(output) as draft:
        base = None
        if adapter:
            base = _copy_adapter(source.model / ADAPTER, draft, dtype)
        else:
            model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        name = f"{PROMPT_NAME}{prompt.suffix}"
        shutil.copyfile(prompt, draft / name)
        card = model_card(output.name, model, settings, name, round=_round(source), evaluation=_evaluation(source), base=base)
        for file in draft.iterdir():
            file.chmod(0o644)  # safetensors writes files that only their owner may read
        (draft / "README.md").write_text(card, encoding="utf-8")
    return output


def _load(folder: Path, dtype: str | None) -> tuple[Any, Any]:
    os.environ.setdefault("DS_ACCELERATOR", "cpu")  # transformers imports DeepSpeed, which else warns about it
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=DTYPES[dtype] if dtype else "auto")
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise ExportError(f"{folder}: can't be loaded: {first}") from None
    stops = sorted(stop_token_ids(tokenizer, model.config, model.generation_config))
    # A new one: a base model's own would bring its temperature or repetition penalty into servers that take it as their default.
    model.generation_config = GenerationConfig(
        do_sample=False,
        bos_token_id=model.generation_config.bos_token_id,
        eos_token_id=stops if len(stops) > 1 else stops[0],
        pad_token_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else stops[0],
    )
    return model, tokenizer


def _copy_adapter(folder: Path, output: Path, dtype: str | None) -> str:
    """Copy an adapter, its tensors in `dtype` if one is asked for; the base model that it belongs on."""
    try:
        tensors = load_file(folder / ADAPTER_WEIGHTS)
        config = (folder / ADAPTER_CONFIG).read_text(encoding="utf-8")
        base = json.loads(config)["base_model_name_or_path"]
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise ExportError(f"{folder}: can't be loaded: {first}") from None
    if dtype:
        tensors = {name: tensor.to(DTYPES[dtype]) for name, tensor in tensors.items()}
    save_file(tensors, output / ADAPTER_WEIGHTS, metadata={"format": "pt"})
    (output / ADAPTER_CONFIG).write_text(config, encoding="utf-8")
    return base


def _settings(source: TrainedWriter) -> dict[str, Any]:
    """The run's config.yaml, {} where the Writer comes from no run."""
    if source.run is None:
        return {}
    try:
        return yaml.safe_load((source.run / "config.yaml").read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError) as error:
        raise ExportError(f"{source.run / 'config.yaml'}: can't be read: {(str(error).splitlines() or ['?'])[0]}") from None


def _prompt_of(source: TrainedWriter, settings: Mapping[str, Any]) -> Path:
    """The prompt that the folder carries (an export's), else its run's, else the built-in one."""
    carried = sorted(source.model.glob(f"{PROMPT_NAME}.*"))
    if carried:
        return carried[0]
    named = settings.get("data", {}).get("prompt")
    return resolve(named) if named else DEFAULT_PROMPT


def _round(source: TrainedWriter) -> dict[str, Any] | None:
    """The line of metrics.jsonl about the round that ended with the checkpoint; a final/ belongs to the last."""
    file = source.run / "metrics.jsonl" if source.run else None
    if file is None or not file.is_file():
        return None
    state = source.model.parent / "state.json"
    wanted = read_state(state.parent).get("round") if state.is_file() else None
    found = None
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # torn by a kill
        if wanted is None or record.get("round") == wanted:
            found = record
    return found


def _evaluation(source: TrainedWriter) -> dict[str, Any] | None:
    file = source.run / "evaluation.json" if source.run else None
    if file is None or not file.is_file():
        return None
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        raise ExportError(f"{file}: not valid JSON; remove it or evaluate again") from None
