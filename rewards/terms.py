"""Reward terms beside the paper's: a function, a name, and a weight in the configuration (docs/extending.md)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Term = Callable[[Any, Any, Any, Any, Any], float]
"""(actions, report, pre_state, post_state, reference) of one position -> a number, as `score_step` gets them."""

_TERMS: dict[str, Term] = {}


class TermError(ValueError):
    """A reward term that is not there, or is there twice."""


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A term and what one unit of it is worth in r_t (Eq. 9)."""

    name: str
    weight: float
    function: Term


def reward_term(name: str) -> Callable[[Term], Term]:
    """Decorator: register a function under `name`. TermError if another function has it."""

    def register(function: Term) -> Term:
        known = _TERMS.setdefault(name, function)
        if (known.__module__, known.__qualname__) != (function.__module__, function.__qualname__):
            raise TermError(f"reward term {name!r} is registered twice: in {known.__module__} and in {function.__module__}")
        _TERMS[name] = function
        return function

    return register


def weighted_terms(weights: Mapping[str, float], modules: Iterable[str] = ()) -> tuple[WeightedTerm, ...]:
    """The terms of `weights` (name -> weight) after importing the modules that register them. TermError for an unknown name."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise TermError(f"reward.modules: {module} can't be imported ({error}); is its folder on PYTHONPATH?") from None
    for name in weights:
        if name not in _TERMS:
            known = ", ".join(sorted(_TERMS)) or "none; name the module that registers it in reward.modules"
            raise TermError(f"reward.terms: there is no term {name!r}; there are {known}")
    return tuple(WeightedTerm(name, weight, _TERMS[name]) for name, weight in weights.items())
