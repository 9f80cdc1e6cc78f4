"""What the page is given: every action's fate, memories as additions, texts that can't break out."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards import RewardWeights
from tests.writer_rl.report.made_runs import make_run
from writer_rl.report.page import asset, embedded
from writer_rl.report.rescoring import Rescorer, what_if_settings
from writer_rl.report.stored_run import StoredRun
from writer_rl.report.view_data import round_data
from writer_rl.report.viewer import SCRIPTS, viewer_page


def add(content, owner="Rex", **changes):
    layer = "group_insight" if owner == "GROUP" else "per_speaker_core"
    return {"action": "ADD", "owner": owner, "source": "Rex", "layer": layer, "utype": "fact", "content": content} | changes


def written(tmp_path, outputs):
    """The data of a run whose trajectories all write `outputs`, one a position; the rest are NOOPs."""
    noop = '{"actions":[{"action":"NOOP"}]}'

    def writes(dice, network, position, state):
        output = outputs[position] if position < len(outputs) else noop
        output = output(state) if callable(output) else output
        return output if isinstance(output, str) else json.dumps({"actions": output})

    run = StoredRun(make_run(tmp_path / "run", rounds=1, networks=["train_real_01"], group_size=2, writes=writes))
    (group,) = run.round(1).groups
    return group, round_data(group, RewardWeights(), "paper", None)


def test_other_thresholds_match_other_records_and_what_stays_is_not_said_twice(tmp_path):
    run = StoredRun(make_run(tmp_path / "run", rounds=1, networks=["train_real_01"], group_size=3))
    (group,) = run.round(1).groups
    settings = RewardWeights(), "paper"
    strict = Rescorer(what_if_settings(run, ["--reward.weights.threshold", "0.999"]))
    cells = [cell for row in round_data(group, *settings, strict)["cells"] for cell in row]
    assert any("pairs2" in cell for cell in cells)
    for cell in cells:
        assert cell.get("pairs2", cell["pairs"]) == [pair for pair in cell["pairs"] if pair[2] >= 0.999]
    lighter = Rescorer(what_if_settings(run, ["--reward.weights.mem", "0.1"]))
    assert not any("pairs2" in cell or "ep2" in cell for row in round_data(group, *settings, lighter)["cells"] for cell in row)


def test_what_became_of_every_action(tmp_path):
    def second(state):
        head = state.heads()[0]
        return [
            {"action": "UPDATE", "entry_id": head.entry_id, "content": "has a newt"},
            {"action": "UPDATE", "entry_id": "nowhere", "content": "x"},
            {**add("from nowhere"), "action": "UPDATE", "entry_id": "nowhere"},
            *(add(f"fact {n}") for n in range(40)),
        ]

    first = [add("has a gecko"), add("has a gecko"), add("x", owner="Nobody"), "no object", {"action": "NOOP"}]
    group, data = written(tmp_path, [first, second, "no JSON"])
    row = data["cells"][0]
    status = [outcome[0] for outcome in row[0]["o"]]
    assert status == ["applied", "rejected", "rejected", "rejected", "rejected"]
    reasons = [outcome[1] for outcome in row[0]["o"]]
    assert "duplicate" in reasons[1] and "roster" in reasons[2] and "object" in reasons[3] and "NOOP" in reasons[4]
    assert [o[0] for o in row[1]["o"]][:4] == ["applied", "rejected", "applied as ADD", "applied"]
    budget = max(8, 2 * len(group.steps[0][1].segment.messages))
    assert [o[0] for o in row[1]["o"]][budget:] == ["beyond"] * (43 - budget)
    assert row[2]["o"] == [] and row[2]["errors"][0].startswith("invalid JSON") and row[3]["o"] == [["noop", "", -1]]
    records = data["records"]
    assert records[row[0]["o"][0][2]][5] == "has a gecko"
    assert [[records[old][5], records[new][5]] for old, new in row[1]["up"]] == [["has a gecko", "has a newt"]]


def test_memories_can_be_rebuilt_from_what_each_position_added(tmp_path):
    run = StoredRun(make_run(tmp_path / "run", rounds=1, networks=["train_update_a"], group_size=3))
    (group,) = run.round(1).groups
    data = round_data(group, RewardWeights(), "paper", None)
    for row, steps in zip(data["cells"], group.steps, strict=True):
        records, gone = [], set()
        for cell, made in zip(row, steps, strict=True):
            records += cell["new"]
            gone |= {old for old, _ in cell["up"]}
            assert [data["records"][place][0] for place in records] == [r.entry_id for r in made.post_state.derived()]
            heads = {data["records"][place][0] for place in records if place not in gone}
            assert heads == {r.entry_id for r in made.post_state.heads()}


@pytest.mark.parametrize("text", ['{"actions": [{"action": "NOOP", "n": NaN}]}', '{"actions": ["a\nb"]}'])
def test_actions_that_javascript_would_not_read_come_with_the_cell(tmp_path, text):
    _, data = written(tmp_path, [text])
    assert "acts" in data["cells"][0][0] and "acts" not in data["cells"][0][1]


@given(st.recursive(st.text() | st.sampled_from(["</script>", "<!--", "\u2028", "&amp;", "\ud83d"]), st.lists, max_leaves=5))
def test_embedded_json_reads_back_and_ends_no_element(value):
    text = embedded(value)
    assert json.loads(text) == value and not re.search("[<>&\u2028\u2029]", text)


def test_a_page_holds_nothing_but_its_own_script_and_no_address(tmp_path):
    run = StoredRun(make_run(tmp_path / "<b>run", rounds=1, networks=["train_real_01"], group_size=2))
    page = viewer_page(run, run.rounds())
    assert len(re.findall(r"<script>", page)) == 1 and "<b>run" not in page and "&lt;b&gt;run" in page
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page) and "default-src &#39;none&#39;" in page


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_puts_text_into_the_page_as_markup(name):
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|fetch\(|XMLHttpRequest", asset(name)
    )
