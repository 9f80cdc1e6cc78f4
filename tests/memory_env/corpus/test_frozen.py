"""The committed sets: their shape, their independence, and that they are what the generator makes."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from memory_env import check_disjoint, load_network, load_trajectory, replay_teacher
from memory_env.corpus import (
    DATA,
    generate_sft,
    heldout_networks,
    teacher,
    train_networks,
    unseen_networks,
    validation_networks,
    vocabulary,
    wording_ask,
)
from memory_env.corpus import frozen as frozen_module
from memory_env.corpus.conversations import from_recipe
from memory_env.corpus.sets import HELDOUT, SFT_SEEDS, TRAIN, UNSEEN, VALIDATION_SEEDS
from memory_env.corpus.vocabulary import templates
from memory_env.datafile import DataError

ROOT = Path(__file__).resolve().parents[3]


def test_the_training_set_has_the_shape_of_table_13():
    networks = train_networks()
    assert [len(n.questions) for n in networks] == [6, 8, 7, 5, 6, 6, 9, 8, 10, 12, 4, 3, 3, 1, 1]
    assert [len(n.segments()) for n in networks] == [5] * 10 + [6, 7, 8, 1, 1]
    assert [len(n.messages) for n in networks[-2:]] == [2, 3]
    assert sum(len(n.segments()) for n in networks) == 73 and sum(len(n.questions) for n in networks) == 89


@pytest.mark.parametrize("networks", [heldout_networks(), unseen_networks()], ids=["heldout", "unseen"])
def test_the_sets_to_test_on_have_305_questions(networks):
    assert [len(n.questions) for n in networks] == [48, 40, 30, 28, 28, 28, 27, 27, 25, 24]
    assert all(len(n.segments()) >= 5 for n in networks)


def test_the_kinds_of_conversation_are_there():
    train = {n.network_id: [a["action"] for actions in teacher(n).actions for a in actions] for n in train_networks()}
    changing = [a for name, actions in train.items() if name.startswith("train_update") for a in actions]
    assert changing.count("UPDATE") > changing.count("ADD") and "NOOP" not in changing
    assert min(actions.count("UPDATE") for name, actions in train.items() if name.startswith("train_update")) >= 4
    assert train["train_noop_a"] == train["train_noop_b"] == ["NOOP"]
    for recipes in (TRAIN, HELDOUT, UNSEEN):
        plans = [from_recipe(recipe).plan for recipe in recipes]
        families = Counter(fact.family for plan in plans for fact in plan.facts)
        assert set(families) == {
            "self",
            "stance",
            "observation",
            "reported",
            "decision",
            "relation",
            "norm",
            "exception",
            "join",
            "leave",
        }
        assert families["join"] >= 2 and families["leave"] >= 2
        assert sum(1 for plan in plans for position in plan.positions if not position.events) >= 3
        assert sum(len(plan.traps) for plan in plans) >= 20


def test_the_sets_never_meet():
    train, tested = train_networks(), [*heldout_networks(), *unseen_networks()]
    check_disjoint(train, tested)
    chats = [
        *train,
        *tested,
        *validation_networks(30),
        *(generate_sft(s, level).network for level in (0, 1, 2) for s in range(60)),
    ]
    digests = [n.content_digest() for n in chats]
    assert len(set(digests)) == len(digests)
    long_segments = Counter(
        tuple((m.speaker, m.content) for m in s.messages) for n in chats for s in n.segments() if len(s.messages) > 3
    )
    assert max(long_segments.values()) == 1
    ranges = sorted([VALIDATION_SEEDS, *SFT_SEEDS, *((r.seed, r.seed + 1) for r in TRAIN + HELDOUT)])
    assert all(a[1] <= b[0] for a, b in pairwise(ranges))


def test_the_frozen_trajectories_replay_to_their_states():
    for network in (*train_networks(), *heldout_networks(), *unseen_networks()):
        read = load_trajectory(DATA / "trajectories" / f"{network.network_id}.json", network)
        replayed = replay_teacher(network, read.actions)
        for kept, state in zip(read.states, replayed, strict=True):
            assert [replace(r, from_ids=()) for r in state.derived()] == [replace(r, from_ids=()) for r in kept.derived()]
            assert kept.edges() == state.edges()
        assert [s.to_dict() for s in teacher(network).states] == [s.to_dict() for s in replayed]


def test_generated_networks_have_teachers_too():
    network = validation_networks(1, first=9)[0]
    assert [s.to_dict() for s in teacher(network).states] == [
        s.to_dict() for s in replay_teacher(network, teacher(network).actions)
    ]


def test_a_network_of_another_corpus_has_no_teacher_here():
    with pytest.raises(DataError, match="grp_1"):
        teacher(replace(train_networks()[0], network_id="grp_1"))


@pytest.mark.parametrize(
    "path",
    [path for name in ("train", "heldout", "unseen") for path in sorted((DATA / name).glob("*.json"))],
    ids=lambda p: p.stem,
)
def test_the_files_survive_a_round_trip(path):
    assert load_network(path).to_dict() == json.loads(path.read_text(encoding="utf-8"))


def test_the_files_are_small():
    assert sum(path.stat().st_size for path in DATA.rglob("*.json")) < 2_500_000


def test_every_wording_is_used():
    used, asked = set(), set()
    for seed in range(1_500):
        chat = generate_sft(seed, 2)
        used |= {u.template for position in chat.plan.positions for u in position.messages}
        asked |= {q.question for q in chat.network.questions}
    from memory_env.corpus import wording_chat, wording_group, wording_person

    records = {text for name in dir(wording_person) + dir(wording_group) if name.endswith("CONTENT") for text in _texts(name)}
    assert set(templates(wording_person, wording_group, wording_chat)) - records == used
    openings = {text.split("{")[0] for text in templates(wording_ask) if not text.startswith("{")} - {"the departed "}
    missing = {o for o in openings if not any(q.startswith(o) for q in asked)}
    assert missing <= {"What did the group decide?", "Which decision did the group make?"}  # asked where nothing was said


def _texts(name):
    from memory_env.corpus import wording_group, wording_person

    value = getattr(wording_person, name, None) or getattr(wording_group, name)
    return value.values() if isinstance(value, dict) else [value]


def test_the_vocabulary_is_closed_and_small():
    assert len(vocabulary()) < 1_000 and set(vocabulary()) <= set(vocabulary(questions=True))


# The files and their verification


def test_verify_accepts_the_committed_files():
    assert frozen_module.verify(sft=False) == 71


def test_the_sft_manifest_is_checked_too(tmp_path, monkeypatch):
    monkeypatch.setattr(frozen_module, "SFT_COUNTS", (5, 4, 3))
    assert frozen_module.build(tmp_path) == frozen_module.verify(tmp_path) == 71
    manifest = tmp_path / "manifest.json"
    fields = json.loads(manifest.read_text())
    fields["sft"][1]["sha256"] = "0" * 64
    manifest.write_text(json.dumps(fields))
    with pytest.raises(DataError, match="level 1 differs"):
        frozen_module.verify(tmp_path)


@pytest.mark.parametrize(
    "harm,said", [("edit", "differs"), ("remove", "missing"), ("add", "not made by the generator"), ("manifest", "hash of")]
)
def test_verify_names_the_file_that_is_wrong(tmp_path, harm, said):
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    path = folder / "heldout" / "heldout_03.json"
    if harm == "edit":
        path.write_bytes(path.read_bytes().replace(b"2026", b"2025", 1))
    elif harm == "remove":
        path.unlink()
    elif harm == "add":
        path = folder / "heldout" / "heldout_11.json"
        path.write_text("{}")
    else:
        path = folder / "manifest.json"
        path.write_text(path.read_text().replace('"train/', '"trian/'))
    code = [sys.executable, "launch/corpus.py", "verify", "--quick", "--folder", str(folder)]
    ended = subprocess.run(code, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 2
    assert str(path) in ended.stderr and said in ended.stderr and "Traceback" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_the_script_shows_a_network_and_lists_all():
    shown = subprocess.run(
        [sys.executable, "launch/corpus.py", "show", "heldout_03"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    network = load_network(DATA / "heldout" / "heldout_03.json")
    assert all(f"{m.speaker}: {m.content}" in shown for m in network.messages) and all(
        q.question in shown for q in network.questions
    )
    listed = subprocess.run(
        [sys.executable, "launch/corpus.py", "list"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "305 questions" in listed and "73 segments  89 questions" in listed
    wrong = subprocess.run([sys.executable, "launch/corpus.py", "show", "heldout_99"], cwd=ROOT, capture_output=True, text=True)
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1 and "heldout_99" in wrong.stderr


def test_load_trajectory_reads_the_files_from_their_paths():
    network = load_network(DATA / "train" / "train_update_a.json")
    assert load_trajectory(DATA / "trajectories" / "train_update_a.json", network).actions == teacher(network).actions
