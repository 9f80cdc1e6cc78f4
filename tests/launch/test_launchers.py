"""An error under torchrun: one line of the first rank, and the launcher's own summary holds the reason."""

import subprocess
import sys
from pathlib import Path

from tests.conftest import PATIENCE


def test_what_two_ranks_meet_alike_is_one_line_and_the_launchers_reason(repository, tmp_path):
    command = [
        Path(sys.executable).with_name("torchrun"),
        "--nproc_per_node",
        "2",
        "launch/grpo.py",
        "--config",
        "configs/demo.yaml",
    ]
    options = ["--data.train", str(tmp_path / "nets" / "train"), "--output_dir", str(tmp_path / "run")]
    done = subprocess.run([*command, *options], cwd=repository, capture_output=True, text=True, timeout=PATIENCE)
    said = [line for line in done.stderr.splitlines() if line.startswith("grpo.py: ")]
    assert done.returncode != 0 and len(said) == 1
    assert f"{tmp_path}/nets/train: no such file or folder; make it with `python launch/prepare.py read" in said[0]
    _, summary = done.stderr.split("Root Cause")
    assert said[0] in summary
