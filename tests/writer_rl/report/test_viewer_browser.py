"""The page in a real browser: what a reader does with it, and what a message must not do in it."""

import json
import random

import pytest

from rewards import RewardWeights
from tests.writer_rl.report.browser import chromium, needs_browser, open_page, requested
from tests.writer_rl.report.made_runs import make_run
from writer_rl.report.rescoring import Rescorer, what_if_settings
from writer_rl.report.stored_run import StoredRun
from writer_rl.report.view_data import round_data
from writer_rl.report.viewer import viewer_page

pytestmark = [pytest.mark.browser, needs_browser]

HOSTILE = [
    "</script><script>window.stolen = 1</script>",
    "<img src=http://example.invalid/x.png onerror='window.stolen = 1'>",
    "<!--<script>", "\u202egnp.exe\u2066", "\u001b[31mred\u0007", "\ud83d alone", "javascript:window.stolen=1", "&lt;b&gt; {{ 7 * 7 }}",
]  # fmt: skip


@pytest.fixture(scope="module")
def driver():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return StoredRun(make_run(tmp_path_factory.mktemp("run"), rounds=3, networks=["train_real_01", "train_update_a"]))


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "view.html"
    what_if = ("reward.weights.mem 0", what_if_settings(run, ["--reward.weights.mem", "0"]))
    path.write_text(viewer_page(run, run.rounds(), what_if), encoding="utf-8")
    return path


def texts(driver, selector):
    return driver.execute_script("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector)


def press(driver, key):
    driver.execute_script("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))", key)


def click(driver, selector):
    driver.execute_script("document.querySelector(arguments[0]).click()", selector)


def test_the_grid_shows_every_advantage_and_marks_silent_columns(driver, page, run):
    open_page(driver, page, "#3/train_real_01")
    (group,) = (g for g in run.round(3).groups if g.network_id == "train_real_01")
    for row in group.records:
        for line in row:
            (label,) = texts(driver, f'[data-cell="{line.trajectory}/{line.position}"]')
            assert abs(float(label.rstrip("✕!…=").replace("−", "-")) - line.advantage) <= 0.0501
    assert len(texts(driver, "#grid thead th")) == 1 + 5


def test_a_cell_opens_with_its_text_its_memory_and_its_arithmetic(driver, page, run):
    open_page(driver, page, "#2/train_update_a")
    click(driver, '[data-cell="3/2"]')
    (group,) = (g for g in run.round(2).groups if g.network_id == "train_update_a")
    line, made = group.records[3][2], group.steps[3][2]
    (detail,) = texts(driver, "#detail")
    assert line.text in detail and f"{len(made.pre_state.heads())} records" in detail
    for message in made.segment.messages:
        assert message.content in detail
    totals = texts(driver, "#detail tr.total td.num")
    assert [float(t.replace("−", "-")) for t in totals[::2]] == [round(line.total, 4), round(line.advantage, 4)]
    assert driver.execute_script("return location.hash") == "#2/train_update_a/2/3"


def test_a_deep_link_lands_on_its_cell_and_goes_back(driver, page):
    open_page(driver, page, "#1/train_real_01/4/7")
    assert "round 1, trajectory 7, position 4" in texts(driver, "#detail h2")
    assert driver.execute_script("return document.querySelector('#grid [aria-current=true]').dataset.cell") == "7/4"
    press(driver, "ArrowLeft")
    press(driver, "n")
    assert driver.execute_script("return location.hash") == "#2/train_real_01/3/7"
    driver.back()
    assert "round 1, trajectory 7, position 3" in texts(driver, "#detail h2")


@pytest.mark.parametrize("place", ["#99/nobody/1/2", "#1/train_real_01/9/9", "#%E0%A4%A", "#//", "#1/train_real_01/x/y"])
def test_a_link_to_nowhere_shows_what_there_is(driver, page, place):
    open_page(driver, page, place)
    assert len(texts(driver, "#grid [data-cell]")) >= 8 * 5 and driver.get_log("browser") == []


def test_search_finds_completions_and_messages_and_leads_there(driver, page, run):
    (group,) = (g for g in run.round(1).groups if g.network_id == "train_real_01")
    said = group.steps[0][0].segment.messages[0].content
    open_page(driver, page)
    driver.execute_script(
        "const s = document.getElementById('search'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))", said
    )
    assert any("message of position 0" in hit for hit in texts(driver, "#results a"))
    click(driver, "#results a")
    assert driver.execute_script("return document.getElementById('results').hidden") and texts(driver, "#detail mark")


def test_reference_records_show_who_wrote_them_and_in_which_words(driver, page, run):
    open_page(driver, page, "#1/train_real_01")
    (group,) = (g for g in run.round(1).groups if g.network_id == "train_real_01")
    click(driver, ".ref button.name")
    reference = group.taught.teacher.states[-1].derived()[0]
    assert reference.content in texts(driver, ".ref.open .name")[0]
    shown = texts(driver, ".ref.open .who button")
    assert len(shown) == 8 and set(shown) != {"·"}
    assert len(texts(driver, ".ref.open .words .message")) == 8


def test_questions_show_evidence_answers_and_verdicts_for_all_eight(driver, page, run):
    open_page(driver, page, "#1/train_real_01")
    press(driver, "2")
    (group,) = (g for g in run.round(1).groups if g.network_id == "train_real_01")
    (panel,) = texts(driver, "#panel")
    for question in group.questions:
        assert question["question"] in panel and question["gold"] in panel
        assert sorted(g for e in question["exchanges"] if e["track"] == "both" for g in e["trajectories"]) == list(range(8))
        for exchange in question["exchanges"]:
            assert exchange["answer"] in panel


def test_a_filter_dims_what_does_not_pass_and_the_what_if_colours_change_the_figures(driver, page, run):
    open_page(driver, page, "#1/train_real_01")
    before = texts(driver, "#grid [data-cell]")
    driver.execute_script("const f = document.getElementById('filter'); f.value = 'up'; f.dispatchEvent(new Event('change'))")
    (group,) = (g for g in run.round(1).groups if g.network_id == "train_real_01")
    positive = sum(line.advantage > 0 for row in group.records for line in row)
    assert len(texts(driver, "#grid [data-cell]:not(.off)")) == positive
    driver.execute_script("const c = document.getElementById('colour'); c.value = 'whatif'; c.dispatchEvent(new Event('change'))")
    assert texts(driver, "#grid [data-cell]") != before


def test_a_cell_says_which_counterparts_another_threshold_would_leave(driver, run, tmp_path):
    settings = what_if_settings(run, ["--reward.weights.threshold", "0.999"])
    path = tmp_path / "strict.html"
    path.write_text(viewer_page(run, run.rounds(), ("threshold 0.999", settings)), encoding="utf-8")
    group = run.round(1).groups[0]
    data = round_data(group, RewardWeights(), "paper", Rescorer(settings))
    g, t = next(
        (g, t)
        for g, row in enumerate(data["cells"])
        for t, cell in enumerate(row)
        if any(o[2] in {pair[0] for pair in cell["pairs"] if pair not in cell.get("pairs2", cell["pairs"])} for o in cell["o"])
    )
    open_page(driver, path, f"#1/{group.network_id}/{t}/{g}")
    (panel,) = texts(driver, "#detail")
    assert "what if: no counterpart reaches the threshold" in panel


def test_the_same_cell_across_rounds(driver, page):
    open_page(driver, page, "#1/train_real_01/0/0")
    shown = driver.execute_script("return [...document.querySelector('#detail .strip').children].map(b => b.textContent)")
    assert [label.strip("▸").split(":")[0] for label in shown] == ["1", "2", "3"]


def test_nothing_is_asked_of_the_network(driver, page):
    open_page(driver, page, "#1/train_real_01/0/0")
    for key in "23cfnj":
        press(driver, key)
    assert requested(driver) == [] and driver.get_log("browser") == []


def hostile(dice: random.Random, network, position, state):
    actions = [
        {
            "action": "ADD",
            "owner": name,
            "source": name,
            "layer": "per_speaker_core",
            "utype": "fact",
            "content": dice.choice(HOSTILE),
        }
        for name in sorted({m.speaker for m in network.network.segments()[position].messages})
    ]
    text = json.dumps({"actions": actions}, ensure_ascii=dice.random() < 0.5)
    return text if dice.random() < 0.8 else dice.choice(HOSTILE)


def test_no_script_of_a_message_runs_and_what_hides_is_shown(driver, tmp_path):
    run = StoredRun(make_run(tmp_path / "run", rounds=1, networks=["train_real_01"], writes=hostile))
    path = tmp_path / "view.html"
    page = viewer_page(run, run.rounds())
    path.write_text(page, encoding="utf-8")
    for place in ("#1/train_real_01/0/0", "#1/train_real_01/2/1", "#1/train_real_01/4/6"):
        open_page(driver, path, place)
        for key in "123":
            press(driver, key)
        driver.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
        driver.execute_script("document.querySelectorAll('#detail .strip button').forEach(b => b.click())")
        driver.execute_script(
            "const s = document.getElementById('search'); s.value = 'script'; s.dispatchEvent(new Event('input'))"
        )
        assert driver.execute_script("return window.stolen") is None
        assert driver.execute_script("return document.querySelectorAll('main img, main script, #results img').length") == 0
        assert requested(driver) == []
    assert "U+202E" in "".join(texts(driver, ".ctl")) or "U+001B" in "".join(texts(driver, ".ctl"))


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_wider_than_the_screen(page, width, dark):
    with chromium(width, 800, dark) as driver:
        open_page(driver, page, "#1/train_update_a/5/2")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        background = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (int(background.split("(")[1].split(",")[0]) < 80) == dark
