"""A teacher that is scripted here; the real client is driven in tests/launch/test_prepare.py."""

import json

from memory_env import MemoryState, step
from memory_env.ingest.teach import Teacher, longest_valid_run, review
from memory_env.prompts import PromptTemplate
from tests.memory_env.chats import NOOP, add, segment, update
from tests.memory_env.ingest.test_handwritten import network


class Script:
    """Answers with one list of actions after another and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def complete(self, stage, messages, accept, question_id=""):
        self.asked.append((stage, list(messages), question_id))
        return accept({"actions": self.answers.pop(0)})


def teacher(client, repository, retries=2):
    return Teacher(client, PromptTemplate.load(repository / "configs/prompts/writer.jinja"), retries)


def ann(content):
    return add(content, owner="Ann", source="Ann")


def test_a_good_answer_is_taken_at_once(repository):
    client = Script([ann("lives in Leeds")], [NOOP], [NOOP], [NOOP])
    positions = teacher(client, repository).teach(network())
    assert [taught.tries for taught in positions] == [1, 1, 1, 1]
    assert [record.content for record in positions[-1].state.derived()] == ["lives in Leeds"]
    assert [stage for stage, _, _ in client.asked] == ["write"] * 4
    assert "lives in Leeds" in client.asked[1][1][-1]["content"]


def test_a_refused_answer_goes_back_with_the_reasons(repository):
    wrong = add("x", owner="Zoe", source="Ann")
    client = Script([wrong], [ann("x")], [NOOP], [NOOP], [NOOP])
    positions = teacher(client, repository).teach(network())
    assert positions[0].tries == 2 and positions[0].actions == [ann("x")] and not positions[0].refused
    correction = client.asked[1][1]
    assert json.loads(correction[-2]["content"]) == {"actions": [wrong]}
    assert "owner is not in the roster" in correction[-1]["content"]


def test_what_stays_wrong_is_left_out_and_the_best_try_is_kept(repository):
    wrong = add("x", owner="Zoe", source="Ann")
    better = [ann("kept"), wrong]
    client = Script([wrong, wrong], better, [wrong, wrong, wrong], [NOOP], [NOOP], [NOOP])
    first = teacher(client, repository).teach(network())[0]
    assert (first.tries, first.actions) == (3, [ann("kept")])
    assert [action for action, _ in first.refused] == [wrong] and first.refused[0][1] == "owner is not in the roster"
    assert first.report.errors == ()


def test_nothing_valid_is_a_noop(repository):
    client = Script([], [NOOP], [NOOP], [NOOP])
    first = teacher(client, repository, retries=0).teach(network())[0]
    assert first.actions == [NOOP] and first.report.errors == ()


def test_too_many_actions_are_cut_to_the_budget():
    state, one = MemoryState.empty(), segment(0, "hello")
    actions = [add(f"fact {number}") for number in range(12)]
    kept, refused = longest_valid_run(state, one, actions)
    assert kept == actions[:8] and len(refused) == 4 and "budget" in refused[0][1]


def test_settling_takes_what_depends_on_what_was_kept():
    state, report = step(MemoryState.empty(), segment(0), [add("lives in Leeds")])
    (entry,) = report.created_ids
    actions = [update(entry, "lives in York"), update(entry, "lives in Bath"), add("likes tea"), add("likes  TEA")]
    kept, refused = longest_valid_run(state, segment(1), actions)
    assert kept == [actions[0], actions[2]] and [action for action, _ in refused] == [actions[1], actions[3]]


def test_the_review_shows_everything_and_cannot_be_broken_by_text(repository):
    evil = "a | b <script>alert(1)</script>\n# heading `code`"
    client = Script([ann(evil), add(evil, owner="Zoe")], [ann(evil)], [NOOP], [NOOP], [NOOP])
    page = review(network(), teacher(client, repository, retries=0).teach(network()))
    assert "<script>" not in page and "\n# heading" not in page
    assert page.count("## Position") == 4 and "**refused**" in page
    rows = [line for line in page.splitlines() if line.startswith("| ADD")]
    assert all(line.replace("\\|", "").count("|") == 7 for line in rows)
