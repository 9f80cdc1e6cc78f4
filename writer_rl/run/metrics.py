"""One flat record of figures per round. Its keys are the same from the first round to the last, null where nothing was measured.

Fixed keys make curves comparable, and they make it safe for ranks to reduce them: no rank ever lacks a key another has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

Metrics = dict[str, float | int | None]


def checked_metrics(metrics: Metrics, keys: Iterable[str] | None = None) -> Metrics:
    """The metrics with numbers that JSON can hold (not finite: null); RuntimeError if the keys are not `keys`."""
    if keys is not None and set(keys) != set(metrics):
        differing = sorted(set(keys) ^ set(metrics))
        raise RuntimeError(f"metrics: the keys of a run are fixed, but these came or went: {', '.join(differing)}")
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in metrics.items()}


def untimed(record: Mapping[str, Any]) -> dict[str, Any]:
    """A metrics record without what depends on the clock: what two equal runs agree on."""
    return {key: value for key, value in record.items() if not key.startswith(("time/", "perf/"))}
