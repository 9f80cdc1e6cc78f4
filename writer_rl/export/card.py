"""README.md of an exported Writer: what it is, what it was trained on and how, how well it does, and how to run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from writer_rl.config import ROOT

SETTINGS = (
    ("optimizer", "trainer", "optimizer"),
    ("learning rate", "trainer", "lr"),
    ("schedule", "trainer", "lr_schedule"),
    ("weight decay", "trainer", "weight_decay"),
    ("gradient norm", "trainer", "max_grad_norm"),
    ("epochs", "trainer", "epochs"),
    ("sequences a step", "trainer", "accumulation"),
    ("group size", "rollout", "group_size"),
    ("networks a round", "rollout", "networks_per_round"),
    ("temperature", "rollout", "temperature"),
    ("top-p", "rollout", "top_p"),
    ("new tokens at most", "rollout", "max_new_tokens"),
    ("clip", "trainer", "clip"),
    ("KL coefficient", "trainer", "kl_coef"),
    ("KL limit", "trainer", "kl_limit"),
)
"""Rows of the card: label, section and key of config.yaml."""
ONLY_GRPO = ("group_size", "networks_per_round", "temperature", "top_p")
"""Settings that every configuration has, and SFT does not use."""


def model_card(
    name: str,
    model: Any,
    settings: Mapping[str, Any],
    prompt: str,
    *,
    round: Mapping[str, Any] | None = None,
    evaluation: Mapping[str, Any] | None = None,
    base: str | None = None,
) -> str:
    """The card as Markdown.

    model: the exported module. settings: the run's config.yaml, {} without a run. prompt: the prompt file's name in the folder.
    round: the line of metrics.jsonl that the checkpoint belongs to. evaluation: the run's evaluation.json. base: the
    model that an adapter apart belongs on; None: the folder holds the whole model.
    """
    library = "transformers" if base is None else f"peft\nbase_model: {_short(base)}"
    return (
        f"---\nlibrary_name: {library}\npipeline_tag: text-generation\ntags: [memory, group-chat]\n---\n"
        f"# {name}\n\n"
        "A Writer: it reads one segment of a group chat with the memory so far, and answers with the actions "
        '(ADD, UPDATE, NOOP) that bring the memory up to date, as JSON `{"actions": [...]}`.\n\n'
        f"{_table(_model(model, settings, base))}\n\n"
        f"## Data\n\n{_table(_data(settings)) or 'Unknown: it comes from no run of this program.'}\n\n"
        f"## Settings\n\n{_table(_training(settings, round)) or 'Unknown: it comes from no run of this program.'}\n\n"
        f"## Evaluation\n\n{_evaluation(round, evaluation)}\n\n"
        f"## Use\n\n{_use(name, prompt, base)}"
    )


def _model(model: Any, settings: Mapping[str, Any], base: str | None) -> dict[str, Any]:
    return {
        "architecture": type(model).__name__,
        "parameters": f"{sum(p.numel() for p in model.parameters()):,}",
        "dtype": str(model.dtype).removeprefix("torch."),
        "context": getattr(model.config, "max_position_embeddings", None),
        "chat template arguments": ", ".join(f"{key}={value}" for key, value in _template_arguments(settings).items()),
        "start": _start(settings.get("model", {})),
        "adapter": _adapter(settings.get("model", {}).get("lora") or {}, base),
    }


def _template_arguments(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    return settings.get("model", {}).get("chat_template_kwargs") or {}


def _data(settings: Mapping[str, Any]) -> dict[str, Any]:
    trainer, data = settings.get("trainer", {}), settings.get("data", {})
    curriculum = trainer.get("curriculum") or ()
    generated = bool(curriculum) and all(stage.get("level") is not None or stage.get("task") == "copy" for stage in curriculum)
    return {
        "training networks": "embedded corpus, generated" if generated else _sources(data.get("train")),
        "stages": ", ".join(stage["name"] for stage in curriculum),
        "trajectories": _sources(data.get("trajectories")),
        "messages a segment": data.get("window") or ("one session" if data else None),
    }


def _training(settings: Mapping[str, Any], round: Mapping[str, Any] | None) -> dict[str, Any]:
    trainer = settings.get("trainer")
    if not trainer:
        return {}
    grpo = "kl_coef" in trainer
    rows: dict[str, Any] = {"method": "position-aligned GRPO" if grpo else "supervised fine-tuning on teacher trajectories"}
    if round and "round" in round:
        rows["rounds" if grpo else "steps"] = f"{round['round']} of {trainer['steps']}" if grpo else round["round"]
    for label, section, key in SETTINGS:
        if grpo or key not in ONLY_GRPO:
            rows[label] = settings.get(section, {}).get(key)
    weights = settings.get("reward", {}).get("weights")
    rows["reward weights"] = ", ".join(f"{key} {value}" for key, value in weights.items()) if grpo and weights else None
    rows["seed"] = settings.get("seed")
    return rows


def _evaluation(round: Mapping[str, Any] | None, evaluation: Mapping[str, Any] | None) -> str:
    parts = []
    if evaluation and evaluation.get("rows"):
        parts += [f"{evaluation.get('total', '?')} questions.", _results(evaluation["rows"])]
    measured = {
        key.removeprefix("evaluation/"): f"{value:.3f}"
        for key, value in (round or {}).items()
        if key.startswith("evaluation/") and isinstance(value, float)
    }
    if measured:
        parts += ["On the validation networks, when this checkpoint was made:", _table(measured)]
    return "\n\n".join(parts) or "None recorded with this checkpoint; `python launch/evaluate.py` measures it."


def _results(rows: list[Mapping[str, Any]]) -> str:
    lines = ["| Writer | accuracy % | token-F1 % | MeanQ | MeanN |", "| --- " * 5 + "|"]
    for row in rows:
        figures = (row.get(key) for key in ("accuracy_mean", "token_f1_mean", "mean_q", "mean_n"))
        lines.append(f"| {row['writer']} | " + " | ".join("-" if f is None else f"{f:.2f}" for f in figures) + " |")
    return "\n".join(lines)


def _adapter(lora: Mapping[str, Any], base: str | None) -> str | None:
    if not lora.get("rank"):
        return None
    where = "merged into the weights" if base is None else "apart: this folder holds it alone"
    return f"LoRA of rank {lora['rank']}, alpha {lora['alpha']}, on {', '.join(lora['target_modules'])}; {where}"


def _use(name: str, prompt: str, base: str | None) -> str:
    imports, load = "", 'AutoModelForCausalLM.from_pretrained(".")'
    serve = (
        "Served, and used by writer-rl:\n\n"
        f"```\nvllm serve {name}\n"
        f"python launch/remember.py --memory chat.db --writer served:{name} --base-url http://localhost:8000/v1 chat.txt\n```\n"
    )
    if base is not None:
        imports = "from peft import PeftModel\n"
        load = f'PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained("{_short(base)}"), ".")'
        serve = "To serve it, export the checkpoint merged: `launch/export.py` without `--adapter`.\n"
    return (
        f"The prompt it was trained with is `{prompt}`; render it with the segment and memory, put it through the tokenizer's "
        "chat template, and generate greedily until a stop token:\n\n"
        f"```python\n{imports}from transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        f'tokenizer = AutoTokenizer.from_pretrained(".")\nmodel = {load}\n```\n\n'
        f"{serve}"
    )


def _table(facts: Mapping[str, Any]) -> str:
    """Rows that have a value; "" without any."""
    rows = [f"| {key} | {value} |" for key, value in facts.items() if value not in (None, "")]
    return "\n".join(["| | |", "| --- | --- |", *rows]) if rows else ""


def _sources(named: Any) -> str:
    """Sources as configured, paths of the repository without its place on this disk."""
    listed = [named] if isinstance(named, str) else list(named or ())
    return ", ".join(_short(source) for source in listed)


def _short(path: str) -> str:
    return path.removeprefix(f"{ROOT}/")


def _start(model: Mapping[str, Any]) -> str | None:
    if not model:
        return None
    started = {"random": "random weights", "structured": "a structured initialisation (docs/sft.md)"}
    return started.get(model.get("init", ""), _short(model.get("path", "")))
