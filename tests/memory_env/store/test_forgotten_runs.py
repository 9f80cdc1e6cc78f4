"""What quotes forgotten words and comes in later loses them; what merely shares a few words does not."""

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_env.store.forget import allow_again, forget_chat, forget_member, forget_messages
from memory_env.store.forgotten_runs import RUNS_SCHEMA, ForgottenRuns
from memory_env.store.quotations import CUT, Quotations
from memory_env.store.store import MemoryStore
from memory_env.store.tombstones import admitted
from tests.memory_env.store.test_forget import CHAT, bytes_on_disk, outputs, rows, said
from tests.memory_env.store.test_store import write

QUOTES = [
    ("Bob", "Ann told us: the cottage at Hvaler costs 412 kroner, imagine", f"Ann told us: {CUT}, imagine"),
    ("Bob", "THE COTTAGE -- at Hvaler costs 412 Kroner!", f"{CUT}!"),
    ("Cem", "> my blood pressure is far too high again\nreally?", f"> {CUT}\nreally?"),
    ("Cem", "so my blood pressure is far too high too", f"so {CUT} too"),  # six words in a row and one more
    ("Cem", "my blood pressure is fine", "my blood pressure is fine"),
    ("Cem", "a cottage at Hvaler is dear", "a cottage at Hvaler is dear"),
]


@pytest.fixture
def memory(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, CHAT, outputs())
        yield store


def forgets():
    return [
        lambda store: forget_member(store, "Ann"),
        lambda store: forget_messages(store, [r.entry_id for r in store.state().verbatim() if r.source == "Ann"]),
        lambda store: forget_chat(store, ""),
    ]


@pytest.mark.parametrize("forget", forgets())
def test_a_quotation_that_comes_later_is_cut_as_an_earlier_one_was(memory, forget):
    forget(memory)
    later = [said(who, text, 20 + n, channel="other") for n, (who, text, _) in enumerate(QUOTES)]
    for _ in range(2):  # and read again, nothing is new
        allowed, held_back = admitted(memory.connection, later)
        assert [message.content for message in allowed] == [cut for _, _, cut in QUOTES] and held_back == 0
        write(memory, allowed)
    assert sum("dear" in record.content for record in memory.state().verbatim()) == 1


def test_the_hashes_hold_no_word_and_go_with_the_leave_to_come_back(memory):
    forget_member(memory, "Ann")
    kept = memory.connection.execute("SELECT * FROM forgotten_runs").fetchall()
    assert kept and all(len(start) == 4 and len(digest) == 8 for start, digest, _, _ in kept)
    assert b"hvaler" not in bytes_on_disk(memory.path).lower()
    assert allow_again(memory, "Ann")
    assert rows(memory.path)["forgotten_runs"] == []
    assert admitted(memory.connection, [said("Bob", QUOTES[0][1], 30)])[0][0].content == QUOTES[0][1]


def test_what_another_said_first_is_theirs_also_later(memory):
    words = "row row row your boat gently down the stream"
    write(memory, [said("Bob", words, 6), said("Ann", f"{words}, my secret is the blue door", 7, speaker_id="u1")])
    forget_member(memory, "Ann")
    again = said("Cem", f"we sang {words}; Ann said my secret is the blue door", 40)
    assert admitted(memory.connection, [again])[0][0].content == f"we sang {words}; Ann said {CUT}"


WORD = st.sampled_from(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "kappa", "omega"])
TEXT = st.lists(WORD, min_size=0, max_size=14).map(" ".join)


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXT, max_size=4), TEXT)
def test_cutting_by_hashes_is_cutting_by_words(forgotten, text):
    """Against the plain definition: every place of every run, word by word."""
    db = sqlite3.connect(":memory:")
    db.execute(RUNS_SCHEMA)
    runs = ForgottenRuns(db, lambda: b"k" * 32)
    plain = Quotations([(0.0, each) for each in forgotten]).runs()
    runs.add(plain)
    words = text.split()
    hit = [False] * len(words)
    for run in plain:
        for place in range(len(words) - len(run) + 1):
            if tuple(words[place : place + len(run)]) == run:
                hit[place : place + len(run)] = [True] * len(run)
    cut = runs.cut(text).split()
    assert [word for word in cut if word != CUT] == [word for word, gone in zip(words, hit, strict=True) if not gone]
    assert runs.cut(runs.cut(text)) == runs.cut(text)
