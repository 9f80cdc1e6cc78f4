"""The run that the documents show is one that this program can read, and docs/viewer.md says its figures."""

import re

import pytest

from writer_rl.config import ROOT
from writer_rl.report.rescoring import Rescorer, stored_scores
from writer_rl.report.stored_run import StoredRun
from writer_rl.report.worked_cell import BEGIN, END, section, teaching_cell

EXAMPLE, DOCUMENT = ROOT / "docs" / "example" / "run", ROOT / "docs" / "viewer.md"
AGAIN = "run docs/example/make_run.sh, which makes the example and its section anew"


@pytest.fixture(scope="module")
def run():
    return StoredRun(EXAMPLE)


def test_the_example_replays_as_it_was_recorded(run):
    score = Rescorer(run.config)
    for each in run.rounds():
        for group in each.groups:
            assert group.differing == 0, AGAIN
            assert (score(group).returns == stored_scores(group)[0]).all(), AGAIN


def test_the_document_reads_the_cell_with_the_figures_it_has(run):
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text[text.index(BEGIN) : text.index(END) + len(END)] == section(run), AGAIN


def test_the_figures_of_the_document_add_up(run):
    """Every sum of the section is worked out again from the numbers that stand in it."""
    found = section(run)
    plain = found.replace("·", "*").replace("^", "**").replace("(mean) ", "").replace("(worst) ", "")
    sums = re.findall(r"((?:\d+\.?\d*|[-+*/() ])+) = (-?\d+\.\d+)", plain)
    assert len(sums) >= 6
    for terms, value in sums:
        total = eval(terms.strip(" -"))  # digits and operators alone: the pattern takes nothing else
        assert abs(total - float(value)) < 0.01, (terms, value)
    cell = teaching_cell(run)
    assert f"= {cell.line.total:.4f} (Eq. 9)" in found
    if cell.line.advantage:
        assert f"= {cell.line.advantage:.4f} (Eq. 23-24)" in found


def test_the_example_holds_no_path_of_the_machine_that_made_it():
    for file in EXAMPLE.rglob("*"):
        if file.suffix in (".yaml", ".jsonl", ".json", ".html"):
            assert not re.search(r"(?<![\w.])/(work|home|tmp|root|Users)/", file.read_text(encoding="utf-8")), file
    size = sum(file.stat().st_size for file in EXAMPLE.rglob("*") if file.is_file())
    assert size < 3_000_000
