"""Stages follow one another when they should, at the rate they should."""

import json
from dataclasses import asdict

import pytest

from writer_rl.config import ConfigError, CurriculumStage, load_config
from writer_rl.sft.curriculum import WINDOW, Curriculum, CurriculumProgress


def stages():
    return [
        CurriculumStage(name="copy", task="copy", max_steps=100, until_accuracy=0.9, lr_factor=2.0),
        CurriculumStage(name="full", level=2, max_steps=5),
        CurriculumStage(name="decay", level=2, max_steps=5, lr_factor=1.0, lr_final_factor=0.2),
    ]


def run(curriculum, accuracy, steps):
    return [curriculum.advance(accuracy) for _ in range(steps)]


def test_a_stage_ends_at_its_accuracy_but_not_before_a_window_of_steps():
    curriculum = Curriculum(stages())
    assert run(curriculum, 0.95, WINDOW) == [False] * (WINDOW - 1) + [True]
    assert (curriculum.stage.name, curriculum.progress.step, curriculum.progress.recent) == ("full", 0, [])


def test_the_mean_of_the_window_counts():
    curriculum = Curriculum(stages())
    run(curriculum, 0.0, 3)
    assert not any(run(curriculum, 0.91, WINDOW - 1))
    assert curriculum.advance(0.91)


def test_a_stage_ends_at_its_last_step_without_the_accuracy():
    curriculum = Curriculum(stages())
    ends = run(curriculum, 0.0, 100)
    assert ends.index(True) == 99
    assert run(curriculum, 1.0, 5) == [False] * 4 + [True]
    assert run(curriculum, 1.0, 5)[-1] and curriculum.stage is None
    with pytest.raises(RuntimeError):
        curriculum.advance(1.0)


def test_rates_of_each_stage():
    curriculum = Curriculum(stages(), CurriculumProgress(stage=2))
    rates = []
    for _ in range(5):
        rates.append(curriculum.lr_factor())
        curriculum.advance(0.0)
    assert rates == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2])
    assert Curriculum(stages()).lr_factor() == 2.0


def test_remaining_is_an_upper_bound_that_shrinks_with_every_step():
    curriculum = Curriculum(stages())
    assert curriculum.remaining() == 110
    run(curriculum, 0.0, 30)
    assert curriculum.remaining() == 80
    run(curriculum, 1.0, 27)
    assert curriculum.stage.name == "full" and curriculum.remaining() == 10


def test_progress_survives_json():
    progress = CurriculumProgress(stage=1, step=4, place=(2, 3), recent=[0.5, 0.25])
    assert CurriculumProgress.from_dict(json.loads(json.dumps(asdict(progress)))) == progress


@pytest.mark.parametrize(
    ("stage", "complaint"),
    [
        ({"name": "a", "task": "copy"}, "has no end"),
        ({"name": "a", "level": 2}, "has no end"),
        ({"name": "a", "teacher": "biased"}, "set level"),
        ({"name": "a", "lr_final_factor": 0.1}, "needs max_steps"),
        ({"name": "a", "level": 3, "max_steps": 1}, "level"),
        ({"name": "a", "easier": 1.0, "max_steps": 1}, "easier"),
    ],
)
def test_impossible_stages_stop_before_anything_loads(stage, complaint):
    with pytest.raises(ConfigError, match=complaint):
        load_config("sft", None, ["--trainer.curriculum", json.dumps([stage])])
