"""The bias of temperature and nucleus, from log-probabilities of what was drawn."""

import math

import pytest
import torch

from rollout.hf.token_sampling import sample_tokens
from rollout.mismatch import processed_logprobs
from rollout.sampling_bias import BiasSums


def test_by_hand():
    """Two completions: p 0.5 drawn at 0.8; p 0.4, 0.9 drawn at 0.5, 1."""
    log = [[math.log(v) for v in row] for row in ([0.5], [0.4, 0.9])]
    drawn = [[math.log(v) for v in row] for row in ([0.8], [0.5, 1.0])]
    found = BiasSums.of(log, drawn).to_metrics()
    assert found["rollout/nucleus_mass"] == pytest.approx((0.5 / 0.8 + 0.4 / 0.5 + 0.9) / 3)
    sequences = math.log(0.5 / 0.8), math.log(0.36 / 0.5)
    assert found["rollout/sequence_log_ratio/mean"] == pytest.approx(sum(sequences) / 2)
    assert found["rollout/sequence_log_ratio/min"] == pytest.approx(min(sequences))
    assert found["rollout/sequence_log_ratio/max"] == pytest.approx(max(sequences))
    parts = BiasSums.of(log[:1], drawn[:1]) + BiasSums() + BiasSums.of(log[1:], drawn[1:])
    assert parts.to_metrics() == pytest.approx(found)
    assert set(BiasSums().to_metrics().values()) == {None}


def test_the_mass_is_that_of_the_nucleus():
    torch.manual_seed(1)
    logits = torch.randn(30) * 2
    raw = torch.log_softmax(logits, -1)
    draws = 50_000
    temperature, top_p = torch.full((draws,), 0.8), torch.full((draws,), 0.8)
    tokens = sample_tokens(logits.expand(draws, -1), temperature, top_p, torch.rand(draws, dtype=torch.float64))
    processed = processed_logprobs(logits.expand(30, -1), torch.arange(30), 0.8, 0.8)
    found = BiasSums.of([raw[tokens].tolist()], [processed[tokens].tolist()])
    assert found.to_metrics()["rollout/nucleus_mass"] == pytest.approx(raw[processed > -1e9].exp().sum().item(), abs=0.02)
    assert found.tokens.result().k3 > 0.01
