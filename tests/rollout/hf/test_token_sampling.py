"""Drawing a token: exactly the definition of temperature and nucleus, row by row, and no draw from broken logits."""

import pytest
import torch

from rollout.engine import EngineError
from rollout.hf.token_sampling import TOP_CANDIDATES, sample_tokens


def plain_draw(logits, temperature, top_p, uniform):
    """The probability of the token drawn by the textbook, and how far the draw is from flipping."""
    ordered, _ = torch.softmax(logits.double() / temperature, -1).sort(descending=True)
    mass = ordered.cumsum(0)
    size = 1
    while size < len(ordered) and mass[size - 1] < top_p:
        size += 1
    shares = (ordered[:size] / ordered[:size].sum()).cumsum(0)
    chosen = min(int((shares <= uniform).sum()), size - 1)
    return float(ordered[chosen]), min(float((shares - uniform).abs().min()), float((mass - top_p).abs().min()))


@pytest.mark.parametrize("vocabulary", [2, 5, TOP_CANDIDATES, TOP_CANDIDATES + 1, 500])
@pytest.mark.parametrize("spread", [0.01, 1.0, 20.0])
def test_every_row_is_the_plain_definition(vocabulary, spread):
    generator = torch.Generator().manual_seed(vocabulary)
    rows = 24
    logits = torch.randn(rows, vocabulary, generator=generator) * spread
    temperature = torch.tensor([0.1, 0.8, 1.0, 3.0] * 6)
    top_p = torch.tensor([0.05, 0.5, 0.95, 0.999, 1.0, 1.0] * 4)
    uniform = torch.rand(rows, generator=generator, dtype=torch.float64)
    uniform[:2] = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    drawn = sample_tokens(logits, temperature, top_p, uniform)
    for row in range(rows):
        expected, distance = plain_draw(logits[row], float(temperature[row]), float(top_p[row].double()), float(uniform[row]))
        # By probability, since neighbours in the order may be equal in float32.
        got = float(torch.softmax(logits[row].double() / float(temperature[row]), -1)[drawn[row]])
        assert got == pytest.approx(expected, rel=1e-6) or distance < 1e-5


@pytest.mark.parametrize("vocabulary", [3, TOP_CANDIDATES + 9])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_are_one_clear_error(vocabulary, value):
    logits = torch.zeros(2, vocabulary)
    logits[1, 1] = value
    ones = torch.ones(2)
    with pytest.raises(EngineError, match="not finite"):
        sample_tokens(logits, ones, ones * 0.9, torch.tensor([0.5, 0.5], dtype=torch.float64))


def test_a_token_of_no_probability_is_never_drawn():
    logits = torch.full((1, 5), float("-inf"))
    logits[0, 3] = 0.0
    for uniform in (0.0, 1 - 2**-53):
        assert sample_tokens(logits, torch.ones(1), torch.ones(1), torch.tensor([uniform], dtype=torch.float64)) == 3


@pytest.mark.parametrize("vocabulary", [6, TOP_CANDIDATES + 72])
def test_of_equal_probabilities_the_lower_id_comes_first(vocabulary):
    uniform = (torch.arange(vocabulary, dtype=torch.float64) + 0.5) / vocabulary
    ones = torch.ones(vocabulary)
    assert sample_tokens(torch.zeros(vocabulary, vocabulary), ones, ones, uniform).tolist() == list(range(vocabulary))
