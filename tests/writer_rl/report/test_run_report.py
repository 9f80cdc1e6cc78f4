"""A report of runs: what they share and where they differ, bands over seeds, the best and worst, on a page and on a terminal."""

import json

import pytest
import yaml

from tests.writer_rl.report.browser import chromium, needs_browser, open_page, requested
from tests.writer_rl.report.made_runs import make_run
from writer_rl.report.report_page import report_page, report_text, sparkline
from writer_rl.report.run_report import ReportedRun, differing, experiments, flat, open_runs, panel_lines
from writer_rl.run.directory import RunError


def write_run(path, returns, **settings):
    path.mkdir(parents=True)
    tree = {"data": {"train": ["corpus:train"]}, "trainer": {"steps": len(returns)}, "seed": 0, "output_dir": str(path)}
    for key, value in settings.items():
        section, _, name = key.partition("__")
        if name:
            tree.setdefault(section, {})[name] = value
        else:
            tree[section] = value
    (path / "config.yaml").write_text(yaml.safe_dump(tree))
    lines = [{"round": n, "reward/return/mean": v, "skips/kl": n, "time/rollout": 2.0} for n, v in enumerate(returns, 1)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_settings_by_dotted_key():
    assert flat({"a": {"b": 1, "c": {}}, "d": [1]}) == {"a.b": 1, "a.c": {}, "d": [1]}


def test_runs_that_differ_in_their_seed_alone_are_one_curve_with_a_band(tmp_path):
    seeds = [write_run(tmp_path / str(seed), [0.1 + seed, 0.2 + seed], seed=seed) for seed in (0, 1, 2)]
    other = write_run(tmp_path / "other", [0.5, 0.6], trainer__lr=0.1)
    runs = open_runs([*seeds, other])
    assert [len(members) for _, members in experiments(runs)] == [3, 1]
    band, single = panel_lines(runs, ["reward/return/mean"])
    assert [y for _, y in band.points] == pytest.approx([1.1, 1.2])
    assert band.low == pytest.approx((0.1, 0.2)) and band.high == pytest.approx((2.1, 2.2))  # sample deviation of 0, 1, 2 is 1
    assert single.points == ((1, 0.5), (2, 0.6)) and not single.low
    assert set(differing(runs)) == {"seed", "trainer.lr"}


@pytest.mark.parametrize("name", ["none", "empty"])
def test_what_is_no_run_says_so(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match=name):
        open_runs([tmp_path / name])


def test_runs_of_different_networks_are_not_put_on_one_page(tmp_path):
    first, second = write_run(tmp_path / "a", [0.1]), write_run(tmp_path / "b", [0.1], data__train=["corpus:practice"])
    with pytest.raises(RunError, match="other networks"):
        open_runs([first, second])
    with pytest.raises(RunError, match="twice"):
        open_runs([first, first])


def test_best_and_worst_link_into_the_viewer_and_text_is_text(tmp_path):
    run = make_run(tmp_path / "run", rounds=2, networks=["train_noop_a"], group_size=3)
    file = run / "trajectories" / "round-000002.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0] |= {"text": "<script>alert(1)</script>\u202e\u001b[31m", "return": 9.0}
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run / "view.html").write_text("")
    page = report_page([ReportedRun.open(run)], tmp_path / "elsewhere" / "report.html")
    assert 'href="../run/view.html#2/train_noop_a/0/0"' in page
    assert "<script>alert" not in page and "\u202e" not in page and "\u001b" not in page and "\\u202e" in page


def test_one_screen_of_a_terminal_explains_its_words_and_sends_no_escape_sequence(tmp_path):
    run = write_run(tmp_path / "run\u001b[31m", [0.1, 0.2, 0.9])
    text = report_text(open_runs([run]))
    assert "\u001b" not in text and "round 3 of 3" in text and "skipped updates: kl 3" in text
    assert "mean of r_t (Eq. 9)" in text and len(text.splitlines()) < 24


def test_a_spark_line_by_hand():
    assert sparkline([0, 1]) == "▁█" and sparkline([5, 5]) == "▁▁" and len(sparkline(list(range(1000)))) == 24


def test_a_page_of_a_run_that_measured_next_to_nothing(tmp_path):
    page = report_page(open_runs([write_run(tmp_path / "run", [0.3])]), tmp_path / "report.html")
    assert "What a round&#39;s line says" in page or "What a round's line says" in page


@pytest.mark.browser
@needs_browser
@pytest.mark.parametrize("width", [390, 1300])
def test_the_page_fits_the_screen_and_asks_for_nothing(tmp_path, width):
    run = make_run(tmp_path / "run", rounds=2, networks=["train_noop_a"], group_size=3)
    path = tmp_path / "report.html"
    path.write_text(report_page([ReportedRun.open(run)], path), encoding="utf-8")
    with chromium(width, 800) as driver:
        open_page(driver, path)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        assert requested(driver) == [] and driver.get_log("browser") == []
        assert driver.execute_script("return document.querySelectorAll('svg').length") >= 1
