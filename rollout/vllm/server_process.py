"""A sampler server that this process starts and ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rollout.engine import EngineError


@dataclass(slots=True)
class ServerProcess:
    """A sampler server that this process started.

    Example: ``ServerProcess(["--model", "runs/sft/export", "--tensor-parallel", "2"], Path("runs/a/sampler.json"))``
    """

    arguments: Sequence[str]
    state_file: Path
    environment: dict[str, str] = field(default_factory=dict)
    timeout_s: float = 600.0
    process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start the server and wait until it listens. Raises EngineError with its last line if it ends before."""
        self.stop()
        self.state_file.parent.mkdir(parents=True, exist_ok=True)
        self.state_file.unlink(missing_ok=True)
        log = self.state_file.with_suffix(".log")
        command = [sys.executable, "-m", "rollout.vllm.serve", "--state", str(self.state_file), *self.arguments]
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path, **self.environment}
        # The server ends when this pipe closes: it can't outlive its run, however that ends.
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [*command, "--until-stdin-closes"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        deadline = time.monotonic() + self.timeout_s
        while not self.state_file.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                lines = log.read_text(errors="replace").strip().splitlines() or ["no output"]
                self.stop()
                raise EngineError(f"the sampler server did not start: {lines[-1]} (see {log})")
            time.sleep(0.1)

    def stop(self) -> None:
        """End the server, by force if it takes longer than 20 s."""
        if self.process is None:
            return
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
