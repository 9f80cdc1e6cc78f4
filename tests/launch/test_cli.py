import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from launch.cli import ROOT, Terminated, UsageError, empty_output, exit_code, parser
from memory_env.datafile import DataError
from tests.conftest import PATIENCE
from writer_rl.config import ConfigError


def raising(error):
    def main(argv):
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("--x: is no number"), 2),
        (DataError("f.json: line 3: no speaker; add one"), 2),
        (FileNotFoundError(2, "No such file or directory", "gone.json"), 2),
        (ValueError("a bug deep inside"), 1),
        (RuntimeError("it broke"), 1),
        (OSError(28, "No space left on device", "x"), 1),
        (MemoryError(), 1),
        (KeyboardInterrupt(), 130),
        (Terminated(), 143),
    ],
)
def test_every_end_has_its_code_and_one_line(error, code, capsys, monkeypatch):
    monkeypatch.delenv("WRITER_RL_DEBUG", raising=False)
    assert exit_code(raising(error), []) == code
    written = capsys.readouterr().err
    assert written.count("\n") == 1 and "Traceback" not in written


def test_the_line_says_what_and_where(capsys):
    exit_code(raising(DataError("f.json: line 3: no speaker; add one")), [])
    assert capsys.readouterr().err.endswith(": f.json: line 3: no speaker; add one\n")
    exit_code(raising(FileNotFoundError(2, "No such file or directory", "gone.json")), [])
    assert "gone.json: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(("rank", "lines"), [("0", 1), ("1", 0), ("7", 0)])
def test_what_every_process_of_a_run_meets_is_said_once(capsys, monkeypatch, rank, lines):
    monkeypatch.setenv("LOCAL_RANK", rank)
    missing = FileNotFoundError(2, "No such file or directory", "gone.json")
    for error in (DataError("f.json: no speaker"), ConfigError("c.yaml: unknown key 'x'"), UsageError("--x: no"), missing):
        assert exit_code(raising(error), []) == 2
        assert capsys.readouterr().err.count("\n") == lines
    with pytest.raises(SystemExit) as ended:
        parser("").parse_args(["--nope"])
    assert ended.value.code == 2 and capsys.readouterr().err.count("--nope") == lines
    # This one may be its own trouble.
    assert exit_code(raising(RuntimeError("it broke")), []) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_launcher_is_told_the_reason_for_its_summary(tmp_path, monkeypatch, capsys):
    file = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(file))
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert exit_code(raising(DataError("f.json: no speaker")), []) == 2
    assert json.loads(file.read_text())["message"]["message"].endswith(": f.json: no speaker")


def test_a_long_message_is_cut_to_three_lines(capsys):
    exit_code(raising(RuntimeError("\n".join(str(n) for n in range(50)))), [])
    assert capsys.readouterr().err.count("\n") == 3


def test_success_and_a_chosen_code():
    assert exit_code(lambda argv: None, []) == 0
    assert exit_code(lambda argv: 130, []) == 130


def test_the_traceback_is_there_when_asked_for(capsys, monkeypatch):
    monkeypatch.setenv("WRITER_RL_DEBUG", "1")
    exit_code(raising(RuntimeError("it broke")), [])
    assert "Traceback" in capsys.readouterr().err


def test_an_output_that_holds_something_is_refused(tmp_path):
    assert empty_output(tmp_path / "new") == tmp_path / "new"
    assert empty_output(tmp_path) == tmp_path
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="not empty"):
        empty_output(tmp_path)
    with pytest.raises(UsageError, match="is a file"):
        empty_output(tmp_path / "file")


SCRIPT = """
import sys, time
sys.path.insert(0, {root!r})
from launch.cli import run

def main(argv):
    try:
        print("ready", flush=True)
        {body}
    finally:
        print("saved", flush=True)

run(main)
"""


def start(tmp_path, repository, body):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT).format(root=str(repository), body=body))
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_unwind_the_script(tmp_path, repository, number, code):
    process = start(tmp_path, repository, f"time.sleep({PATIENCE})")
    os.kill(process.pid, number)
    output, error = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output) == (code, "saved\n")
    assert error.count("\n") == 1


def test_a_closed_pipe_ends_quietly(tmp_path, repository):
    process = start(tmp_path, repository, "[print('x' * 1000) for _ in range(10_000)]")
    process.stdout.close()
    error = process.stderr.read()
    # What a shell reports of a program that its reader left: 128 + SIGPIPE.
    assert process.wait(timeout=PATIENCE) == 141
    assert error == ""


def test_another_connection_that_breaks_is_a_failed_run(capsys):
    assert exit_code(raising(BrokenPipeError(32, "Broken pipe")), []) == 1
    assert "Broken pipe" in capsys.readouterr().err


def test_a_package_that_is_not_installed_is_named_with_the_remedy(capsys):
    def main(argv):
        import no_such_package.inner  # noqa: F401

    assert exit_code(main, []) == 2
    written = capsys.readouterr().err
    assert "needs the package no_such_package" in written and "pip install" in written and written.count("\n") == 1


def test_a_missing_module_of_our_own_is_a_fault(capsys):
    def main(argv):
        import memory_env.no_such_module  # noqa: F401

    assert exit_code(main, []) == 1


@pytest.mark.parametrize("ranks", ["1", "2"])
def test_a_finished_rank_is_not_undone_by_what_libraries_do_at_the_very_end(tmp_path, ranks):
    """Threads of process groups that are still referenced abort in the interpreter's teardown; what was asked for at exit is done."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import atexit, os, sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from launch.cli import run\n"
        "class Group:\n    def __del__(self, abort=os.abort):\n        abort()\n"
        "atexit.register(print, 'bye')\n"
        "def main(argv):\n    global group\n    group = Group()\n    print('done')\n    return 143\n"
        "run(main)\n"
    )
    ended = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env={**os.environ, "WORLD_SIZE": ranks}, timeout=PATIENCE
    )
    assert ended.stdout.split() == ["done", "bye"]
    assert ended.returncode == (143 if ranks == "2" else -signal.SIGABRT)
