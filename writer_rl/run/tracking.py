"""Where a run's figures go besides metrics.jsonl: Weights & Biases, a progress bar, one line per update."""

from __future__ import annotations

import netrc
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from writer_rl.config import SharedConfig
from writer_rl.run.glossary import SKIPPED

STEP_KEY = "round"
"""The key that W&B uses as the step of every curve, so that repeated rounds after a resume are never dropped."""


TABLE_COLUMNS = ("network_id", "trajectory", "position", "return", "advantage", "qa_gain", "text")
"""What W&B's table of completions shows of each."""


class TrackingError(ValueError):
    """W&B can't be used as configured; one line with the remedy."""


class Tracker:
    """The console and W&B of one run; on ranks other than 0 it does nothing.

    Example: ``tracker.log({"round": 3, "policy/kl": 0.001}, line="round 3/30 ...")``
    """

    def __init__(
        self, config: SharedConfig, folder: Path, total: int, done: int = 0, main: bool = True, wandb_id: str | None = None
    ) -> None:
        self.main = main
        self.run: Any = _wandb_run(config, folder, wandb_id) if main else None
        shown = main and config.tracking.progress and sys.stderr.isatty()
        self._bar = tqdm(total=total, initial=done, disable=not shown, dynamic_ncols=True, leave=False)

    @property
    def wandb_id(self) -> str | None:
        """The W&B run's id, to go on with the same run after a resume."""
        return self.run.id if self.run is not None else None

    def say(self, text: str) -> None:
        """A line on stdout, above the progress bar."""
        if self.main:
            self._bar.write(text, file=sys.stdout)
            sys.stdout.flush()

    def phase(self, name: str) -> None:
        """What the progress bar says is going on."""
        self._bar.set_description(name)

    def log(self, record: Mapping[str, Any], line: str, steps: int = 1) -> None:
        """The figures of one round, or of `steps` of them together."""
        self._bar.update(steps)
        self.say(line)
        if self.run is not None:
            self.run.log({key: value for key, value in record.items() if value is not None})

    def completions(self, number: int, records: Sequence[Mapping[str, Any]]) -> None:
        """A table of a round's completions in W&B, `rollouts/completions`; `records` as in trajectories/*.jsonl."""
        if self.run is None:
            return
        import wandb

        rows = [[number, *(record.get(name) for name in TABLE_COLUMNS)] for record in records]
        table = wandb.Table(columns=[STEP_KEY, *TABLE_COLUMNS], data=rows)
        self.run.log({STEP_KEY: number, "rollouts/completions": table})

    def close(self, exit_code: int = 0) -> None:
        """Finish the bar and the W&B run."""
        self._bar.close()
        if self.run is not None:
            self.run.finish(exit_code=exit_code)
            self.run = None


def _wandb_run(config: SharedConfig, folder: Path, run_id: str | None) -> Any:
    settings = config.tracking
    mode: Any = os.environ.get("WANDB_MODE") or settings.wandb
    if settings.wandb == "off" or mode == "disabled":
        return None
    if mode == "online":
        _require_key()
    try:
        import wandb
    except ImportError:
        print("tracking: wandb is not installed; the figures are in metrics.jsonl (pip install wandb)", file=sys.stderr)
        return None
    run = wandb.init(
        mode=mode,
        project=settings.project,
        entity=settings.entity,
        name=settings.name or folder.name,
        dir=folder,
        id=run_id,
        resume="allow" if run_id else None,
        config=config.model_dump(mode="json"),
        settings=wandb.Settings(silent=True, console="off"),
    )
    run.define_metric(STEP_KEY)
    run.define_metric("*", step_metric=STEP_KEY)
    return run


def _require_key() -> None:
    """Without a key W&B would ask for one on the terminal, and a run would wait for ever."""
    if os.environ.get("WANDB_API_KEY"):
        return
    try:
        if netrc.netrc().authenticators(os.environ.get("WANDB_BASE_URL", "api.wandb.ai").removeprefix("https://")):
            return
    except (OSError, netrc.NetrcParseError):
        pass
    raise TrackingError("tracking.wandb: online needs WANDB_API_KEY (or `wandb login`); or set it to offline")


MOST_CUT = 0.5
MOST_MISMATCH = 0.01
"""Nats per token on average; kernels alone stay well below it."""


def alarms(record: Mapping[str, Any]) -> list[str]:
    """What spoils training without stopping it, with the remedy.

    Example: ["96% of the completions are cut off: raise rollout.max_new_tokens (docs/training.md)"]
    """
    found = []
    cut, mismatch = record.get("rollout/truncation"), record.get("rollout/mismatch_mean")
    if cut is not None and cut > MOST_CUT:
        found.append(f"{cut:.0%} of the completions are cut off: raise rollout.max_new_tokens (docs/training.md)")
    if mismatch is not None and mismatch > MOST_MISMATCH:
        found.append(f"sampler and trainer differ by {mismatch:.2g} nats a token (docs/rollouts.md)")
    return found


def console_line(record: Mapping[str, Any], steps: int, skipped: str | None) -> str:
    """One readable line per GRPO update.

    Example: "round 3/30  return 0.512  mem 0.431  valid 0.98  qa +0.12  kl 0.0031  clip 1.2%  entropy 0.41  |g| 0.83  silent 40%
    len 34  9.1 s", all on one line; "skipped: kl (...)" at its end if the update was, and "! ..." for each of `alarms`.
    """

    def show(label: str, key: str, form: str) -> str:
        value = record.get(key)
        return f"{label} {'-' if value is None else format(value, form)}"

    parts = [
        f"round {record['round']}/{steps}",
        show("return", "reward/return/mean", ".3f"),
        show("mem", "reward/mem/mean", ".3f"),
        show("valid", "reward/valid/mean", ".2f"),
        show("qa", "qa/gain/mean", "+.2f"),
        show("kl", "policy/kl", ".4f"),
        show("clip", "policy/clip_fraction", ".1%"),
        show("entropy", "policy/entropy", ".2f"),
        show("|g|", "policy/grad_norm", ".2f"),
        show("silent", "reward/zero_variance", ".0%"),
        show("len", "rollout/completion_length/mean", ".0f"),
        show("eval", "evaluation/total", ".3f") if record.get("evaluation/total") is not None else "",
        f"{record['time/round']:.1f} s",
        f"skipped: {skipped} ({SKIPPED[skipped]})" if skipped else "",
        *(f"! {alarm}" for alarm in alarms(record)),
    ]
    return "  ".join(part for part in parts if part)
