"""Checkpoints that are whole or absent, hold everything that decides the rest of a run, and are plain Hugging Face inside.

checkpoints/
  latest                 the name of the newest one that a run can go on from; moved last, so a reader never sees half of one
  best                   the name of the best one by evaluation
  000012/                after 12 rounds (GRPO) or steps (SFT)
    state.json           counters, policy version, order position, world size, reference, ...
    model/               the model as `from_pretrained` reads it, an adapter merged; the adapter apart in model/adapter/
    engine/              DeepSpeed's parameters and optimizer state, one part per rank where ZeRO shards them; of an adapter run
                         without the frozen base, which is in `model.path`
    rng-00000.pt         random number generators, per rank

A light one has state.json and model/ alone: 2 bytes a parameter in bfloat16, where one to go on from has 16. It is for
evaluation, export and `--model.path`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from memory_env.files import publish, write_text
from rollout.tokenizer import Tokenizer
from rollout.weights import named_weights
from writer_rl.model.lora import ADAPTER, has_adapter, merged, save_adapter
from writer_rl.model.policy import Policy
from writer_rl.train.backend import Backend
from writer_rl.train.distributed import World
from writer_rl.train.reference import weights_digest
from writer_rl.train.rng import rng_state, set_rng_state

FORMAT = 1
POINTERS = ("latest", "best")


class CheckpointError(ValueError):
    """A checkpoint that can't be used here; one line with the remedy."""


class Checkpoints:
    """The checkpoints of one run directory. Every method but the look-ups is collective.

    keep: how many of the newest to go on from stay; keep_weights: how many of the newest light ones. The best stays anyway.

    Example:
        checkpoints = Checkpoints(run / "checkpoints", world, keep=2)
        checkpoints.save(12, backend, tokenizer, {"round": 12, ...})
        state = checkpoints.restore(checkpoints.latest(), backend)      # {"round": 12, ...}
    """

    def __init__(self, folder: Path, world: World, keep: int = 2, keep_weights: int = 2) -> None:
        self.folder, self.world = folder, world
        self.keep, self.keep_weights = keep, keep_weights
        self._frozen: str | None = None

    def latest(self) -> Path | None:
        """The newest complete checkpoint that a run can go on from, if there is one."""
        return pointed_checkpoint(self.folder, "latest")

    def best(self) -> Path | None:
        """The best checkpoint by evaluation, if one was marked."""
        return pointed_checkpoint(self.folder, "best")

    def save(
        self,
        number: int,
        backend: Backend,
        tokenizer: Tokenizer,
        state: Mapping[str, Any],
        best: bool = False,
        light: bool = False,
    ) -> Path:
        """Write checkpoint `number`, then point to it, then remove the old ones. `state` must be JSON.

        light: weights alone. Where one to go on from has this number already, it stays.
        """
        final = self.folder / f"{number:06d}"
        if light and self.world.decided_by_main(lambda: is_resumable(final)):
            if best and self.world.is_main:
                self._point("best", final)
            return final
        draft = self.folder / f".{final.name}.draft"
        if self.world.is_main:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
        self.world.barrier()
        if not light:
            backend.save(draft)
            torch.save(rng_state(), draft / f"rng-{self.world.rank:05d}.pt")
        weights, frozen = whole_weights(backend), self._frozen_base(backend)
        if weights is not None:
            save_hf(backend.policy, weights, tokenizer, draft / "model")
            described = {**_description(backend), "frozen_base": frozen, **state}
            (draft / "state.json").write_text(json.dumps(described, indent=1), encoding="utf-8")
        self.world.barrier()
        if self.world.is_main:
            publish(draft, final)  # over what a run left that was killed before it moved the pointer
            if not light:
                self._point("latest", final)
            if best:
                self._point("best", final)
            self._prune()
        self.world.barrier()
        return final

    def restore(self, path: Path, backend: Backend) -> dict[str, Any]:
        """Load parameters, optimizer and random states; returns the state that `save` was given.

        Raises CheckpointError for a light one, for another model's checkpoint, and for another number of ranks or ZeRO stage,
        whose optimizer parts would not fit.
        """
        state = read_state(path)
        if not is_resumable(path):
            raise CheckpointError(
                f"{path}: holds weights alone, no optimizer; begin a new run from them: --model.path {path}/model, or go on from "
                f"{self.latest() or 'one with an engine/ folder'}"
            )
        _check_fits(path, state, _description(backend))
        if state.get("frozen_base", "") not in ("", self._frozen_base(backend)):
            raise CheckpointError(
                f"{path}: its adapter was trained on another base than model.path has now; put that one back, or begin a new run"
            )
        try:
            backend.load(path)
            rng = path / f"rng-{self.world.rank:05d}.pt"
            if rng.is_file():  # more ranks than before: the new ones keep their own
                set_rng_state(torch.load(rng, weights_only=True))
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, OSError, EOFError, UnpicklingError, KeyError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0].partition(". ")[0]
            raise CheckpointError(
                f"{path}: is damaged ({reason}); go on from an older one: --trainer.resume {path.parent}/NUMBER"
            ) from None
        return state

    def _frozen_base(self, backend: Backend) -> str:
        """The hash of an adapter's base, which no checkpoint holds; "" where everything is trained. Collective."""
        if self._frozen is None:
            frozen = any(not parameter.requires_grad for parameter in backend.policy.parameters())
            self._frozen = weights_digest(backend.policy.model) if frozen else ""
        return self._frozen

    def forget_after(self, number: int) -> None:
        """Remove the checkpoints beyond `number`: a run that goes on from there makes them anew. Called on the main rank."""
        for path in self.folder.glob("[0-9]*"):
            if path.name.isdigit() and int(path.name) > number:
                shutil.rmtree(path)

    def _point(self, pointer: str, path: Path) -> None:
        write_text(self.folder / pointer, path.name + "\n")

    def _prune(self) -> None:
        complete = sorted(p for p in self.folder.iterdir() if p.name.isdigit())
        whole, light = ([p for p in complete if is_resumable(p) is resumable] for resumable in (True, False))
        kept = {*whole[-self.keep :], *light[-self.keep_weights :], self.best(), self.latest()}
        for path in complete:
            if path not in kept:
                shutil.rmtree(path)
        for draft in self.folder.glob(".*.draft"):
            shutil.rmtree(draft)


def is_resumable(path: Path) -> bool:
    """Whether a run can go on from a checkpoint; a light one holds weights alone."""
    return (path / "engine").is_dir()


def pointed_checkpoint(folder: Path, pointer: str) -> Path | None:
    """The complete checkpoint that `folder`/latest or best names, if there is one.

    Where a copy of the run has lost its `latest`, that is the one to go on from with the highest number.
    """
    file = folder / pointer
    path = folder / file.read_text(encoding="utf-8").strip() if file.is_file() else None
    if path is not None and (path / "state.json").is_file():
        return path
    return max(filter(is_resumable, _complete(folder)), key=_number, default=None) if pointer == "latest" else None


def _complete(folder: Path) -> list[Path]:
    return [p for p in folder.glob("[0-9]*") if p.name.isdigit() and (p / "state.json").is_file()]


def _number(path: Path) -> int:
    return int(path.name)


def find_checkpoint(path: Path, resumable: bool = False) -> Path:
    """`path` if it is a checkpoint, the one it points to if it is `latest` or `best`, else the newest of the run directory or
    checkpoints folder that it is (resumable: the newest to go on from).

    Raises CheckpointError where there is none.
    """
    if path.is_file() and path.name in POINTERS:
        pointed = pointed_checkpoint(path.parent, path.name)
        if pointed is not None:
            return pointed
    for folder in (path, path / "checkpoints"):
        if (folder / "state.json").is_file():
            return folder
        latest = pointed_checkpoint(folder, "latest")
        lighter = [] if resumable else [p for p in _complete(folder) if not is_resumable(p)]
        newest = max([*lighter, *([latest] if latest else [])], key=_number, default=None)
        if newest is not None:
            return newest
    raise CheckpointError(f"{path}: no checkpoint (a folder with state.json, or a run directory that has one)")


def read_state(path: Path) -> dict[str, Any]:
    """The state of a checkpoint; CheckpointError if it is not one, or from a newer version of this program."""
    try:
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        version = state["format"]
    except (OSError, ValueError, KeyError, TypeError):
        raise CheckpointError(f"{path}: not a checkpoint: no readable state.json") from None
    if version != FORMAT:
        raise CheckpointError(f"{path}: checkpoint format {version}; this version reads format {FORMAT}")
    return state


def whole_weights(backend: Backend) -> dict[str, torch.Tensor] | None:
    """All parameters on the CPU, on the main rank only (None elsewhere). Collective under ZeRO-3."""
    weights = {}
    for name, tensor in named_weights(backend.policy.model, tied=False):
        if backend.world.is_main:
            # A copy: DeepSpeed's parameters are views of one flat buffer, which safetensors takes for shared memory.
            weights[name] = tensor.to("cpu", copy=True).contiguous()
    return weights if backend.world.is_main else None


def save_hf(policy: Policy, weights: dict[str, torch.Tensor], tokenizer: Tokenizer, folder: Path) -> None:
    """A directory that `AutoModelForCausalLM.from_pretrained` reads: safetensors, configurations, tokenizer, chat template.

    weights: the model's whole tensors by its own names. An adapter is merged, and also stands apart in adapter/.
    """
    policy.model.save_pretrained(folder, state_dict=dict(merged(policy.model, weights.items())))
    tokenizer.save_pretrained(folder)
    if has_adapter(policy.model):
        save_adapter(policy.model, weights, folder / ADAPTER)


def _description(backend: Backend) -> dict[str, Any]:
    shapes = [(n, list(getattr(p, "ds_shape", p.shape))) for n, p in backend.policy.model.named_parameters()]
    return {
        "format": FORMAT,
        "model": hashlib.sha256(json.dumps(shapes).encode()).hexdigest(),
        "world_size": backend.world.size,
        "zero_stage": backend.stage,
    }


def _check_fits(path: Path, saved: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    if saved["model"] != here["model"]:
        raise CheckpointError(f"{path}: a checkpoint of another model: its parameters have other names or shapes")
    sharded = saved["zero_stage"] or here["zero_stage"]
    if saved["zero_stage"] != here["zero_stage"] or (sharded and saved["world_size"] != here["world_size"]):
        raise CheckpointError(
            f"{path}: saved by {saved['world_size']} rank(s) with ZeRO {saved['zero_stage']}, this run has "
            f"{here['world_size']} with ZeRO {here['zero_stage']}; run it as it was, or begin a new run from its "
            f"weights: --model.path {path}/model"
        )
