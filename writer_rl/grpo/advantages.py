"""Position-aligned group-relative advantages: how much better a trajectory did at a position than its siblings there."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

MIN_SIGMA = 0.02
MAX_ADVANTAGE = 3.0


def position_advantages(returns: Any) -> Any:
    """Eq. 23-24: each column of returns [G, T], normalised by its mean and population standard deviation.

    A column whose standard deviation is under 0.02 says nothing: its advantages are 0. Others are clipped to [-3, 3].

    returns: tensor, array or nested lists, one row per trajectory of one network. Computed in float64; the result has the same
    shape, kind, device and floating type (float64 for integers).
    Raises ValueError for another shape and for returns that are not finite.

    Example: position_advantages([[1.0, 0.50], [0.0, 0.51]]) == [[1.0, 0.0], [-1.0, 0.0]]
    """
    torch = sys.modules.get("torch")  # a tensor can't exist before torch is imported
    if torch is not None and isinstance(returns, torch.Tensor):
        values = _advantages(returns.detach().to("cpu", torch.float64).numpy())
        dtype = returns.dtype if returns.is_floating_point() else torch.float64
        return torch.from_numpy(values).to(returns.device, dtype)
    if isinstance(returns, np.ndarray):
        dtype = returns.dtype if np.issubdtype(returns.dtype, np.floating) else np.float64
        return _advantages(returns).astype(dtype)
    return _advantages(returns).tolist()


def position_deviations(returns: Any) -> np.ndarray:
    """sigma of Eq. 23: the population standard deviation [T] of each column of returns [G, T], float64."""
    # One contiguous row per position: numpy then sums each alike, however many other positions there are.
    return np.ascontiguousarray(_table(returns).T).std(axis=1)


def _table(returns: Any) -> np.ndarray:
    try:
        table = np.asarray(returns, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(f"returns: not a table of numbers with rows of one length: {error}") from None
    if table.ndim != 2 or not table.shape[0]:
        raise ValueError(f"returns: expected [G, T] with G >= 1, got shape {list(table.shape)}")
    if not np.isfinite(table).all():
        trajectory, position = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(f"returns: trajectory {trajectory}, position {position} is {table[trajectory, position]}")
    return table


def _advantages(returns: Any) -> np.ndarray:
    table = _table(returns)
    sigma = position_deviations(table)
    mu = np.ascontiguousarray(table.T).mean(axis=1)
    informative = sigma >= MIN_SIGMA
    scaled = (table - mu) / np.where(informative, sigma, 1.0)
    return np.where(informative, np.clip(scaled, -MAX_ADVANTAGE, MAX_ADVANTAGE), 0.0)
