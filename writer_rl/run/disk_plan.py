"""How much disk a run takes, from shapes and settings: what `--dry-run` and `launch/plan.py` print and a run checks at its start.

Bytes of a checkpoint, P parameters, T of them trained, b bytes a parameter in the model's dtype (tests/writer_rl/run/
test_disk_plan.py compares them with the files of real DeepSpeed engines):

    light            b P          model/, an adapter merged and beside it
    to go on from    b P          model/
                     + b T        DeepSpeed's weights; none under ZeRO-3, which has them as master copies alone
                     + 12 T       float32 master copies and two moments; 8 T without ZeRO, where the weights are the masters
"""

from __future__ import annotations

from dataclasses import dataclass

from writer_rl.config import TrainingConfig
from writer_rl.model.shape import ModelShape
from writer_rl.train.deepspeed_config import zero_settings

GIB = 1024**3


@dataclass(frozen=True)
class DiskPlan:
    """Bytes of one checkpoint of each kind, of all that lie there at the fullest moment, and of all that are written.

    What a round leaves beside them (completions, questions, figures) is small and not counted.

    Example (Qwen2.5-3B in bfloat16, ZeRO-2, 30 rounds, one to go on from every 5 and kept, light ones every 2):
        DiskPlan(resumable=49_375_019_008, light=6_171_877_376, fullest=117_265_670_144, written=388_828_274_688)
    """

    resumable: int
    light: int
    fullest: int
    written: int

    def line(self) -> str:
        """For the console."""
        return (
            f"disk              {_gib(self.fullest)} at its fullest, {_gib(self.written)} written in all (a checkpoint to go on "
            f"from {_gib(self.resumable)}, a light one {_gib(self.light)})"
        )


def disk_plan(model: ModelShape, config: TrainingConfig, rounds: int, evaluations: int = 0) -> DiskPlan:
    """The plan of a run of so many rounds (SFT: steps), at most `evaluations` of which leave a new best checkpoint."""
    trainer, width = config.trainer, 4 if config.model.dtype == "float32" else 2
    stage, adapter = zero_settings(trainer, config.model.dtype)[0], model.adapter(config.model.lora.rank)
    trained = adapter or model.parameters
    light = width * (model.parameters + adapter)
    moments = 8 if stage == 0 else 12
    resumable = light + trained * (moments + (0 if stage == 3 else width))
    whole = -(-rounds // trainer.checkpoint_every)
    weights = rounds // trainer.weights_every if trainer.weights_every else 0
    # A new one is whole before an old one goes.
    kept_light = min(trainer.keep_weights + 1, weights) + bool(evaluations)
    fullest = min(trainer.keep_checkpoints + 1, whole) * resumable + kept_light * light
    return DiskPlan(resumable, light, fullest, whole * resumable + (weights + evaluations) * light)


def _gib(count: int) -> str:
    return f"{count / GIB:.1f} GiB"
