"""What an SFT run is going to do, counted before a model is loaded: what `--dry-run` prints."""

from __future__ import annotations

from memory_env import PromptTemplate
from writer_rl.config import SFTConfig, resolve
from writer_rl.sft.stages import needs_networks, planned_stages
from writer_rl.train.data import load_training


def sft_plan(config: SFTConfig) -> list[str]:
    """One line per stage; raises what a run would raise about its prompt file, its data and its curriculum."""
    if config.data.prompt:
        PromptTemplate.load(resolve(config.data.prompt))
    samples = sum(each.length for each in load_training(config.data)) if needs_networks(config) else 0
    lines = []
    for stage in planned_stages(config, samples):
        if stage.task == "copy":
            what = "random strings to copy"
        elif stage.level is None:
            what = f"{samples} writing positions of data.train"
        else:
            what = f"new conversations of level {stage.level}, {stage.teacher} teacher"
        until = f" or accuracy {stage.until_accuracy:.0%}" if stage.until_accuracy else ""
        lines.append(f"{stage.name:12s} {what}; {stage.batch} sequences a step, until step {stage.max_steps}{until}")
    return lines
