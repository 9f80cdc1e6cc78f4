"""DeepSpeed's own configuration, from ours and from what the launcher was told."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from writer_rl.config import TrainerSection, resolve

if TYPE_CHECKING:
    from writer_rl.train.distributed import World


class BackendError(ValueError):
    """Settings or files that DeepSpeed can't run; one line with the remedy."""


def zero_settings(settings: TrainerSection, dtype: str = "float32") -> tuple[int, str]:
    """The ZeRO stage and where optimizer state lives ("none": with the parameters, or "cpu").

    ``auto`` stands for the DeepSpeed file, else the launcher's choice (accelerate's ``--zero_stage``), else stage 0 (1 in
    bfloat16) and none. Raises BackendError for combinations that DeepSpeed has not.
    """
    file = _file(settings).get("zero_optimization", {})
    offload: str = settings.offload
    if settings.zero_stage != "auto":
        stage: int = settings.zero_stage
    else:
        stage = int(file.get("stage", os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", 1 if dtype == "bfloat16" else 0)))
    if offload == "auto":
        launcher = os.environ.get("ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE", "none")
        offload = file.get("offload_optimizer", {}).get("device", launcher)
    if stage == 0 and dtype == "bfloat16":
        raise BackendError("trainer.zero_stage: 0 would sum gradients in bfloat16; use 1, 2 or 3")
    if stage == 0 and offload != "none":
        raise BackendError(f"trainer.offload: {offload} needs trainer.zero_stage 1, 2 or 3")
    return stage, offload


def deepspeed_config(settings: TrainerSection, world: World, dtype: str = "float32") -> dict[str, Any]:
    """What `deepspeed.initialize` gets. Accumulation is 1 because `Backend` sets the boundary by hand."""
    stage, offload = zero_settings(settings, dtype)
    config = _file(settings)
    zero = {"overlap_comm": world.device.type == "cuda" and stage > 1, **config.get("zero_optimization", {}), "stage": stage}
    if offload == "none":
        zero.pop("offload_optimizer", None)
    else:
        zero["offload_optimizer"] = {**zero.get("offload_optimizer", {}), "device": offload}
    config |= {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "train_batch_size": world.size,
        "gradient_clipping": settings.max_grad_norm if stage else 0.0,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "zero_optimization": zero if stage else {"stage": 0},
        "steps_per_print": 10**9,
    }
    if dtype == "bfloat16":
        config["bf16"] = {"enabled": True}
        config["data_types"] = {"grad_accum_dtype": "fp32"}
    return config


def _file(settings: TrainerSection) -> dict[str, Any]:
    """The DeepSpeed file that the configuration or the launcher names, or {}."""
    name = settings.deepspeed or os.environ.get("ACCELERATE_DEEPSPEED_CONFIG_FILE") or ""
    if name in ("", "none", "None"):
        return {}
    try:
        content = json.loads(resolve(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BackendError(f"{name}: no readable DeepSpeed file: {error}") from None
    if not isinstance(content, dict):
        raise BackendError(f"{name}: expected an object with zero_optimization")
    return content
