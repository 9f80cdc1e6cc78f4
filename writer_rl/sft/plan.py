"""What an SFT run is going to do, counted before a model is loaded: what `--dry-run` prints."""

from __future__ import annotations

from memory_env import PromptTemplate
from writer_rl.config import SFTConfig, resolve
from writer_rl.sft.best_samples import best_samples
from writer_rl.sft.stages import needs_networks, planned_stages
from writer_rl.train.data import load_training
from writer_rl.train.missing import missing_data
from writer_rl.train.prompt import fit_line


def sft_plan(config: SFTConfig) -> list[str]:
    """One line per stage, then what is missing; raises what a run would raise about prompt file, data and curriculum."""
    if config.data.prompt:
        PromptTemplate.load(resolve(config.data.prompt))
    wanted = needs_networks(config)
    missing = missing_data(config.data) if wanted else []
    best_of = config.trainer.best_of
    if wanted and best_of:
        samples = len(best_samples(resolve(best_of)))
    else:
        samples = sum(each.length for each in load_training(config.data)) if wanted and not missing else 0
    lines = []
    for stage in planned_stages(config, samples):
        if stage.task == "copy":
            what = "random strings to copy"
        elif stage.level is None:
            source = f"best completions of {best_of}" if best_of else "writing positions of data.train"
            what = f"{'?' if missing else samples} {source}"
        else:
            what = f"new conversations of level {stage.level}, {stage.teacher} teacher"
        until = f" or accuracy {stage.until_accuracy:.0%}" if stage.until_accuracy else ""
        steps = f"until step {stage.max_steps}" if stage.max_steps else f"{config.trainer.epochs} passes"
        lines.append(f"{stage.name:12s} {what}; {stage.batch} sequences a step, {steps}{until}")
    if wanted and not missing:
        lines.append(fit_line(config))
    return [*lines, *missing]
