"""A GRPO run whose sampler is stuck at its first weights and passes both proofs of a sync: what only the mismatch can show."""

from __future__ import annotations

import copy
import os
import sys
from pathlib import Path
from unittest import mock

from tests.writer_rl.processes import CONTEXT


def train_with_stale_sampler(arguments: list[str], log: Path, stuck: bool = True) -> int:
    """Run launch/grpo.py with these arguments in a process of its own; its exit code. What it prints is in `log`."""
    process = CONTEXT.Process(target=_run, args=(arguments, log, stuck))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _run(arguments: list[str], log: Path, stuck: bool) -> None:
    sys.stdout = sys.stderr = log.open("w", buffering=1)
    from launch import grpo
    from launch.cli import exit_code
    from rollout.checksum import named_checksums
    from rollout.hf.engine import HFEngine
    from rollout.weights import named_weights

    class SeparateEngine(HFEngine):
        """Samples from a copy of the trainer's module."""

        def update_weights(self, named_tensors, version):
            if not (stuck and version):
                super().update_weights(named_tensors, version)
            self.policy_version = version

        def weight_checksums(self):
            return named_checksums(named_weights(trained))

    def build(config, backend, tokenizer, *_):
        nonlocal trained
        trained = backend.policy.model
        return SeparateEngine(copy.deepcopy(trained), tokenizer)

    trained = None
    with mock.patch("writer_rl.grpo.setup.build_engine", build):
        code = exit_code(grpo.main, arguments)
    sys.stdout.flush()
    os._exit(code)
