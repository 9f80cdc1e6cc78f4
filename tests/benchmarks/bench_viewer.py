"""How long pages take to make and to open, and how large they are (needs Chromium; about two minutes).

    python tests/benchmarks/bench_viewer.py

Two runs without a model (tests/writer_rl/report/made_runs.py): 60 rounds of four networks, as `make demo` has them; and one round
of 15 networks with 8 trajectories of 8 positions whose completions have about 2,000 tokens. CPU seconds of this process for making
and for scoring again, wall seconds until the browser has drawn the page and until a cell is open.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory_env import MemoryState
from tests.writer_rl.report.browser import chromium, open_page
from tests.writer_rl.report.made_runs import make_run
from writer_rl.report.rescoring import rescored, what_if_settings
from writer_rl.report.stored_run import StoredRun
from writer_rl.report.viewer import viewer_page
from writer_rl.train.data import TaughtNetwork

CHARACTERS = 8000  # about 2,000 tokens
SYLLABLES = ["ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu"]
WORDS = [a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES[:8]]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        demo = make_run(Path(folder) / "demo", ["corpus:train", "corpus:practice"], rounds=60, networks=4)
        measure("60 rounds of 4 networks", StoredRun(demo))
        source = networks(Path(folder))
        options = (*QUIET, "--data.trajectories", str(source.parent / "teachers"))
        large = make_run(Path(folder) / "large", [str(source)], rounds=1, networks=15, writes=long_winded, overrides=options)
        measure("15 x 8 x 8, 2,000 tokens", StoredRun(large))


QUIET = ("--reward.qa.enabled", "false", "--data.heldout", "[]", "--data.validation", "[]")


def measure(name: str, run: StoredRun) -> None:
    """One line of figures."""
    rounds, replaying = timed(run.rounds)
    page, making = timed(lambda: viewer_page(run, rounds))
    _, scoring = timed(lambda: rescored(rounds, what_if_settings(run, ["--reward.weights.mem", "0.3"])))
    path = run.path / "view.html"
    path.write_text(page, encoding="utf-8")
    with chromium() as driver:
        started = time.perf_counter()
        open_page(driver, path)
        driver.execute_script("return document.querySelector('[data-cell]').textContent")
        opened = time.perf_counter() - started
        driver.execute_script("document.querySelector('[data-cell=\"3/3\"]').click()")
        cell = time.perf_counter() - started - opened
    print(
        f"{name:26}  read {replaying:5.1f} s  make {making:5.1f} s  score again {scoring:5.1f} s  {len(page.encode()) / 1e6:5.1f} MB  "
        f"open {opened:4.1f} s  a cell {cell:4.2f} s"
    )


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result and its CPU seconds."""
    started = time.process_time()
    return work(), time.process_time() - started


def networks(folder: Path) -> Path:
    """15 networks of 8 positions with 30 messages each, and teachers who write 6 records a position."""
    dice, file = random.Random(0), folder / "networks.jsonl"
    people = ["Ann", "Ben", "Cem", "Dora", "Eli"]
    teachers = folder / "teachers"
    teachers.mkdir()
    lines = []
    for number in range(15):
        name = f"made_{number:02}"
        sessions = [
            {
                "session_id": f"{name}_s{t}", "session_index": t + 1, "topic": "", "ts": f"2026-01-{t + 1:02}",
                "turns": [{"turn": f"{name}_{t}_{i}", "speaker": dice.choice(people), "speaker_id": "", "content": sentence(dice), "ts": "", "reply_to": ""} for i in range(30)],
            }
            for t in range(8)
        ]  # fmt: skip
        said = sorted({turn["speaker"] for session in sessions for turn in session["turns"]})
        lines.append(
            {
                "schema": "writer-rl/1",
                "scenario": "",
                "speakers": said,
                "sessions": sessions,
                "qa_pairs": [],
                "meta": {"network_id": name},
            }
        )
        first = [sorted({turn["speaker"] for turn in session["turns"]}) for session in sessions]
        transitions = [
            {"session_id": session["session_id"], "messages": [], "actions": [add(dice, dice.choice(first[t])) for _ in range(6)]}
            for t, session in enumerate(sessions)
        ]
        document = {"schema": "speakermem-v4-trajectories/1", "network_id": name, "transitions": transitions}
        (teachers / f"{name}.json").write_text(json.dumps(document))
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def sentence(dice: random.Random) -> str:
    return " ".join(dice.choice(WORDS) for _ in range(10)) + f" {dice.randrange(1000)}"


def add(dice: random.Random, who: str) -> dict[str, str]:
    return {"action": "ADD", "owner": who, "source": who, "layer": "per_speaker_core", "utype": "fact", "content": sentence(dice)}


def long_winded(dice: random.Random, network: TaughtNetwork, position: int, state: MemoryState) -> str:
    """Actions until the text is long: some of the teacher's, changed, and others."""
    speakers = sorted({m.speaker for m in network.network.segments()[position].messages})
    actions = [dict(action, content=action["content"] + " " + dice.choice(WORDS)) for action in network.teacher.actions[position]]
    while len(json.dumps({"actions": actions})) < CHARACTERS:
        actions.append(add(dice, dice.choice(speakers)))
    return json.dumps({"actions": actions})


if __name__ == "__main__":
    main()
