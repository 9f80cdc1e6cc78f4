"""The console command, in this process."""

import contextlib
import io

import pytest

from tests.launch.scripts import Ended
from writer_rl.command import exit_code
from writer_rl.memory.cli import COMMANDS, execute

CHAT = (
    "speaker,ts,content\nAnn,2025-03-01 10:00,my cottage at Hvaler leaks\nBob,2025-03-01 10:01,I bake bread on Sundays\n"
    "Ann,2025-03-01 10:02,the roof is old\n"
)


def command(*arguments) -> Ended:
    """`writer-rl memory ARGUMENTS`."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = exit_code(execute, ["memory", *map(str, arguments)])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
    return Ended(code, output.getvalue(), errors.getvalue())


@pytest.fixture
def memory(tmp_path):
    (tmp_path / "chat.csv").write_text(CHAT)
    path = tmp_path / "m" / "m.db"
    path.parent.mkdir()
    assert command("remember", "--memory", path, tmp_path / "chat.csv").returncode == 0
    return path


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_teaches_and_names_itself(name):
    helped = command(name, "--help")
    assert helped.returncode == 0 and f"  writer-rl memory {name} " in helped.stdout


def test_a_member_is_forgotten_and_an_import_does_not_bring_them_back(memory, tmp_path):
    done = command("forget", "--memory", memory, "Ann")
    assert done.returncode == 0 and "forgot 2 messages" in done.stdout
    assert command("ask", "--memory", memory, "--members").stdout == "Bob\n"
    assert b"Hvaler" not in memory.read_bytes()
    again = command("remember", "--memory", memory, tmp_path / "chat.csv")
    assert "0 new messages" in again.stdout and "2 messages were forgotten" in again.stdout
    assert b"Hvaler" not in memory.read_bytes()
    allowed = command("forget", "--memory", memory, "--allow", "Ann")
    assert allowed.returncode == 0, allowed.stderr
    assert "2 new messages" in command("remember", "--memory", memory, tmp_path / "chat.csv").stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "give one of a member"),
        (("Ann", "--chat", "x"), "give one of a member"),
        (("Eve",), "'Eve' is no member; it knows Ann, Bob"),
        (("--message", "zz", "--redact"), "--redact: belongs to a member"),
        (("--record", "zz"), "holds no record 'zz'"),
        (("--allow", "Bob"), "nobody of that name was forgotten"),
    ],
)
def test_forgetting_what_is_not_there_is_one_line(memory, arguments, line):
    before = memory.read_bytes()
    refused = command("forget", "--memory", memory, *arguments)
    assert refused.returncode == 2 and line in refused.stderr and refused.stderr.count("\n") == 1
    assert memory.read_bytes() == before


def test_an_export_makes_an_equal_memory(memory, tmp_path):
    assert command("export", "--memory", memory, "--output", tmp_path / "m.json").returncode == 0
    assert (tmp_path / "m.json").stat().st_mode & 0o077 == 0
    made = command("import", tmp_path / "m.json", "--memory", tmp_path / "copy.db")
    assert made.returncode == 0 and "3 messages of 2 members" in made.stdout
    assert command("export", "--memory", tmp_path / "copy.db").stdout == (tmp_path / "m.json").read_text()
    again = command("import", tmp_path / "m.json", "--memory", tmp_path / "copy.db")
    assert again.returncode == 2 and "is there already" in again.stderr
    (tmp_path / "x.json").write_text("[]")
    refused = command("import", tmp_path / "x.json", "--memory", tmp_path / "new.db")
    assert refused.returncode == 2 and "no exported memory" in refused.stderr and not (tmp_path / "new.db").exists()


def test_markdown_of_one_member(memory):
    shown = command("export", "--memory", memory, "--format", "markdown", "--member", "Bob")
    assert "I bake bread on Sundays" in shown.stdout and "Hvaler" not in shown.stdout
    assert command("export", "--memory", memory, "--member", "Eve").returncode == 2


def test_a_page_is_written_and_a_terminal_shows_the_same(memory):
    assert command("view", memory).returncode == 0
    assert "<h2>Ann</h2>" in memory.with_suffix(".html").read_text()
    assert "== Bob: 1 messages" in command("view", memory, "--terminal").stdout
    assert command("view", memory.with_name("no.db")).returncode == 2
