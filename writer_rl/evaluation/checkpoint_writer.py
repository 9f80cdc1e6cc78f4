"""A trained model on this machine, decoded greedily."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memory_env import MemoryState, Network, PromptTemplate, Segment
from memory_env.datafile import DataError
from memory_env.replay import Completion
from writer_rl.config import EvaluationConfig, resolve
from writer_rl.evaluation.prompt_file import prompt_path

if TYPE_CHECKING:
    from rollout.engine import Engine
    from rollout.writer_prompt import WriterPrompt

NETWORKS_AT_ONCE = 16


class CheckpointWriter:
    """A model folder through the configured engine; nothing is loaded before it writes.

    Example: ``CheckpointWriter(checkpoint_folder("runs/demo/grpo"), config).write(MemoryState.empty(), segment).text``
    """

    def __init__(self, folder: Path, config: EvaluationConfig):
        self.folder, self._config = folder, config
        self.identity = checkpoint_identity(folder, config)
        self._opened: tuple[Engine, WriterPrompt] | None = None

    def write(self, state: MemoryState, segment: Segment, network_id: str = "") -> Completion:
        """See `writer_rl.evaluation.writers.Writer`."""
        from rollout.engine import GenerationRequest, SamplingParams

        engine, prompt = self._open()
        encoded = prompt.encode(state, segment, network_id)
        greedy = SamplingParams(greedy=True, max_new_tokens=self._config.rollout.max_new_tokens)
        made = engine.generate([GenerationRequest(encoded.token_ids, 0, greedy)])[0]
        return Completion(made.text, made.finish_reason == "length", len(encoded.token_ids), len(made.token_ids))

    def write_networks(self, networks: Sequence[Network]) -> Iterator[tuple[Network, list[Completion]]]:
        """Several networks in lockstep, which an engine does faster than one after the other."""
        from rollout.sampler import write_memories

        engine, prompt = self._open()
        limit, data = self._config.rollout.max_new_tokens, self._config.data
        for start in range(0, len(networks), NETWORKS_AT_ONCE):
            batch = networks[start : start + NETWORKS_AT_ONCE]
            written = write_memories(batch, engine, prompt, limit, window=data.window, strict=data.strict)
            for network in batch:
                steps = written[network.network_id].steps
                yield (
                    network,
                    [
                        Completion(made.text, made.finish_reason == "length", len(made.prompt_ids), len(made.completion_ids))
                        for made in steps
                    ],
                )

    def close(self) -> None:
        """Free the engine."""
        if self._opened is not None:
            self._opened[0].close()
            self._opened = None

    def _open(self) -> tuple[Engine, WriterPrompt]:
        if self._opened is None:
            from writer_rl.evaluation.engines import open_engine

            self._opened = open_engine(self.folder, self._config)
        return self._opened


def checkpoint_folder(source: str) -> Path:
    """The model folder that a path means: itself (an export), a checkpoint's model, or that of a run's newest checkpoint."""
    path = resolve(source)
    for candidate in (path, path / "model"):
        if (candidate / "config.json").is_file():
            return candidate
    from writer_rl.train.checkpoint import CheckpointError, find_checkpoint

    try:
        return find_checkpoint(path) / "model"
    except CheckpointError:
        raise DataError(f"--writer {source}: no model there; name an exported folder, a checkpoint or a run directory") from None


def checkpoint_identity(folder: Path, config: EvaluationConfig) -> str:
    """Hash over the model's files and the settings that shape its outputs (not over its path)."""
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in (".json", ".safetensors", ".bin", ".jinja", ".model"):
            digest.update(file.name.encode())
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    settings = [
        config.data.window, config.data.heads_per_owner, config.data.max_chars, config.data.strict,
        config.rollout.max_new_tokens, config.model.dtype, PromptTemplate.load(prompt_path(config, folder)).sha256,
        *([config.model.chat_template_kwargs] if config.model.chat_template_kwargs else []),
    ]  # fmt: skip
    digest.update(json.dumps(settings).encode())
    return digest.hexdigest()
