"""launch/view.py and launch/score.py --run: pages and figures of stored runs, and one line for what is none."""

import json
import threading

import pytest

from launch import score, view
from launch.cli import exit_code
from tests.writer_rl.report.made_runs import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "run", rounds=2, networks=["train_real_01"], group_size=2)


def test_a_page_is_written_beside_the_run_and_again_over_itself(run, capsys):
    assert exit_code(view.main, [str(run)]) == 0 == exit_code(view.main, [str(run), "--round", "2"])
    assert f"{run / 'view.html'}: 1 round, " in capsys.readouterr().out
    page = (run / "view.html").read_text()
    assert 'id="round-2-0"' in page and 'id="round-1-0"' not in page


def test_what_if_settings_reach_the_page(run, tmp_path):
    output = tmp_path / "page.html"
    assert exit_code(view.main, [str(run), "--output", str(output), "--reward.weights.mem", "0.1"]) == 0
    assert "reward.weights.mem 0.1" in output.read_text()


def test_live_goes_on_until_the_last_round(tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path / "run", rounds=2, networks=["train_noop_a"], group_size=2)
    metrics = (run / "metrics.jsonl").read_text().splitlines(True)
    (run / "metrics.jsonl").write_text(metrics[0])
    monkeypatch.setattr(view, "SECONDS_BETWEEN_LOOKS", 0.01)
    done = threading.Thread(target=view.main, args=([str(run), "--live"],), daemon=True)
    done.start()
    while not (run / "view.html").exists():
        done.join(0.01)
    first = (run / "view.html").read_text()
    (run / "metrics.jsonl").write_text("".join(metrics))
    done.join()
    assert '"live":true' in first and '"live":false' in (run / "view.html").read_text()
    assert capsys.readouterr().out.count("open it in a browser") == 2


def test_scores_of_a_run_for_people_and_for_programs(run, capsys):
    assert exit_code(score.main, ["--run", str(run), "--reward.weights.mem", "0"]) == 0
    assert "silent positions" in capsys.readouterr().out
    assert exit_code(score.main, ["--run", str(run), "--rounds", "2", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["round"] for line in lines] == ["all", 2] and lines[0]["signs"] == 0 == lines[0]["advantage_shift"]


@pytest.mark.parametrize(
    "main, arguments, message",
    [
        (view.main, ["{run}", "--round", "9"], "has no round 9"),
        (view.main, ["{run}", "--rounds", "x"], "--rounds x"),
        (view.main, ["{run}/trajectories"], "round-*.jsonl"),
        (view.main, ["{run}/none"], "no such run"),
        (view.main, ["{run}", "--output", "{run}"], "is a folder"),
        (view.main, ["{run}", "--seed", "1"], "only reward settings"),
        (score.main, ["--run", "{run}", "--reward.weights.mem"], "needs a value"),
        (score.main, ["--run", "{run}", "--rounds", "3-"], "no round in 3-"),
    ],
)
def test_bad_input_is_one_line(run, capsys, main, arguments, message):
    assert exit_code(main, [argument.format(run=run) for argument in arguments]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint and complaint.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--transitions", "t", "--rounds", "1"], ["--transitions", "t", "--run", "r"], []])
def test_score_takes_transitions_or_a_run(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        score.main(arguments)
    assert ended.value.code == 2 and capsys.readouterr().err.count("\n") == 1
