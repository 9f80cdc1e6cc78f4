"""The Writer of a living memory, as an application names it: run as it was trained where nobody configured it."""

from __future__ import annotations

import json

from memory_env.query.answer.endpoint_client import EndpointClient, EndpointSettings
from writer_rl.config import EvaluationConfig
from writer_rl.evaluation.checkpoint_writer import checkpoint_folder
from writer_rl.evaluation.served_writer import served_folder
from writer_rl.evaluation.writers import ENDPOINT, NOBODY, SERVED, Writer, open_writer


def open_own_writer(source: str, config: EvaluationConfig | None = None, base_url: str | None = None) -> Writer:
    """The Writer that `source` names: "none", "endpoint:MODEL", "served:MODEL", or a folder (DataError without a model in it).

    Without a `config` see `own_config`.
    """
    chosen = config or own_config(source)

    def client(model: str) -> EndpointClient:
        return EndpointClient(EndpointSettings(model, base_url, max_tokens=chosen.rollout.max_new_tokens)).check()

    return open_writer(source, chosen, client)


def own_config(source: str) -> EvaluationConfig:
    """How to run a Writer that nobody configured: with the prompt it was trained with (`prompt_path`), and room for the prompt in
    its context: at most a quarter for the output."""
    config = EvaluationConfig()
    if source == NOBODY or source.startswith(ENDPOINT):
        return config
    if source.startswith(SERVED):
        folder = served_folder(source.removeprefix(SERVED), config)
        if folder is None:
            return config
    else:
        folder = checkpoint_folder(source)
    context = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("max_position_embeddings", 32768)
    most = max(1, min(config.rollout.max_new_tokens, int(context) // 4))
    return config.model_copy(update={"rollout": config.rollout.model_copy(update={"max_new_tokens": most})})
