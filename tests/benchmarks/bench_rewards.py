"""CPU time of the local rewards of one update against their plain definition (difflib and scipy, pair by pair).

    python tests/benchmarks/bench_rewards.py [--groups 3] [--trajectories 8] [--positions 5] [--repeats 3]

Each group is one network: a reference memory that grows to 30-60 records, and trajectories that write it a little
differently (reworded, left out, misattributed, updated). Both sides score the same steps; every value must be equal
(==), else the script fails. One update is one group: the scorer starts empty for each.
"""

import argparse
import random
import sys
import time
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rewards import Scorer, StepReward, score_step
from tests.rewards import plain

MEMBERS = ("Alice", "Bob", "Chidi", "Dana", "Emre", "Farah")
PERSON_LAYERS = ("per_speaker_core", "per_speaker_profile")
GROUP_LAYERS = ("group_interaction", "group_insight")
SUBJECTS = ("the review", "the Friday call", "her commute", "his thesis", "the lake trip", "the budget", "the rota")
VERBS = ("prefers", "has moved", "will prepare", "no longer wants", "is worried about", "agreed to", "keeps defending")
DETAILS = (
    "because the venue is booked until late in the month",
    "after two of the tests failed",
    "and asks for a shorter agenda",
    "although Dana disagrees",
    "before the new colleague arrives",
    "with the smaller camera",
    "at half past seven",
    "since the train was late again",
    "and shares the notes the same day",
)


def content(dice: random.Random, owner: str) -> str:
    details = " ".join(dice.sample(DETAILS, dice.choice((1, 1, 2))))
    return f"{owner} {dice.choice(VERBS)} {dice.choice(SUBJECTS)} {details}"


def reword(dice: random.Random, text: str) -> str:
    words = text.split()
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(words))
        if dice.random() < 0.5:
            words[place] = dice.choice(("the", "again", "now", "soon", "really", "Monday", "their"))
        elif len(words) > 3:
            del words[place]
    return " ".join(words)


class Memory:
    """A state that grows: entries in creation order and UPDATE edges."""

    def __init__(self):
        self.entries: list[dict] = []
        self.edges: list[dict] = []

    def add(self, owner: str, source: str, layer: str, text: str) -> None:
        entry = {"owner": owner, "source": source, "layer": layer, "content": text, "superseded_by": ""}
        self.entries.append(entry | {"entry_id": f"d{len(self.entries)}"})

    def update(self, old: int, text: str) -> None:
        previous = self.entries[old]
        self.add(previous["owner"], previous["source"], previous["layer"], text)
        previous["superseded_by"] = self.entries[-1]["entry_id"]
        self.edges.append({"old": previous["entry_id"], "new": self.entries[-1]["entry_id"]})

    def state(self) -> dict:
        return {"entries": [dict(entry) for entry in self.entries], "update_edges": list(self.edges)}


def group(dice: random.Random, trajectories: int, positions: int) -> list[tuple]:
    """The steps of one network: (actions, report, pre_state, post_state, reference) of every trajectory."""
    reference, written = Memory(), [Memory() for _ in range(trajectories)]
    steps = []
    for _ in range(positions):
        facts = [fact(dice) for _ in range(dice.randint(6, 11))]
        for owner, source, layer, text in facts:
            reference.add(owner, source, layer, text)
        if len(reference.entries) > 12:
            reference.update(dice.randrange(6), content(dice, "It now"))
        for memory in written:
            before = memory.state()
            actions = []
            for owner, source, layer, text in facts:
                chance = dice.random()
                if chance < 0.12:
                    continue
                owner = dice.choice(MEMBERS) if chance < 0.17 and owner != "GROUP" else owner
                memory.add(owner, source, layer, text if chance > 0.6 else reword(dice, text))
                actions.append(memory.entries[-1] | {"action": "ADD"})
            if reference.edges and dice.random() < 0.7:
                memory.update(dice.randrange(4), reword(dice, reference.entries[-1]["content"]))
                edge = memory.edges[-1]
                actions.append({"action": "UPDATE", "entry_id": edge["old"], "content": memory.entries[-1]["content"]})
            report = {"json_valid": True, "attempted": len(actions), "schema_valid_actions": len(actions), "errors": []}
            report |= {"too_many_actions": False, "hit_length_limit": False}
            steps.append((actions, report, before, memory.state(), reference.state()))
    return steps


def fact(dice: random.Random) -> tuple[str, str, str, str]:
    source = dice.choice(MEMBERS)
    if dice.random() < 0.25:
        return "GROUP", source, dice.choice(GROUP_LAYERS), content(dice, "The group")
    owner = source if dice.random() < 0.7 else dice.choice(MEMBERS)
    return owner, source, dice.choice(PERSON_LAYERS), content(dice, owner)


def scored(steps: list[tuple]) -> list[StepReward]:
    scorer = Scorer()
    return [score_step(*step, scorer) for step in steps]


def values(reward: StepReward) -> dict:
    """Every figure of the step; added terms (none here) are no part of the plain definition."""
    return {name: value for name, value in asdict(reward).items() if name != "terms"}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--groups", type=int, default=3)
    arguments.add_argument("--trajectories", type=int, default=8)
    arguments.add_argument("--positions", type=int, default=5)
    arguments.add_argument("--repeats", type=int, default=3, help="alternations; the least CPU time of each side counts")
    chosen = arguments.parse_args()
    scored(group(random.Random(0), 1, 1))  # imports and first calls stay out of the figures
    print(f"{'records':>8} {'steps':>6} {'plain, CPU s':>13} {'package, CPU s':>15} {'ratio':>7}  values")
    for seed in range(chosen.groups):
        steps = group(random.Random(seed), chosen.trajectories, chosen.positions)
        ours = theirs = float("inf")
        for _ in range(chosen.repeats):
            started = time.process_time()
            expected = [plain.step(*step) for step in steps]
            between = time.process_time()
            got = scored(steps)
            ours, theirs = min(ours, time.process_time() - between), min(theirs, between - started)
        if any(reward.terms for reward in got) or [values(reward) for reward in got] != expected:
            sys.exit(f"group {seed}: the values differ")
        records = len(steps[-1][4]["entries"])
        print(f"{records:>8} {len(steps):>6} {theirs:>13.3f} {ours:>15.4f} {theirs / ours:>7.1f}  equal")


if __name__ == "__main__":
    main()
