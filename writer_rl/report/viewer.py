"""The viewer of rollouts: stored rounds as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from writer_rl.config import GRPOConfig
from writer_rl.report.page import render
from writer_rl.report.rescoring import Rescorer
from writer_rl.report.stored_run import StoredRound, StoredRun, run_name
from writer_rl.report.view_data import CONSTANTS, index_data, network_data, round_data

SCRIPTS = ("text.js", "memory.js", "grid.js", "cell.js", "panels.js", "viewer.js")
SHOWN_METRICS = {
    "reward/return/mean": "mean return",
    "policy/kl": "KL",
    "reward/zero_variance": "silent",
    "qa/gain/mean": "question gain",
    "rollout/completion_length/mean": "tokens",
}


def viewer_page(
    run: StoredRun, rounds: Sequence[StoredRound], what_if: tuple[str, GRPOConfig] | None = None, live: bool = False
) -> str:
    """The page of these rounds. what_if: how to call other settings, and the configuration. live: it reloads itself."""
    rescorer = Rescorer(what_if[1]) if what_if else None
    own = Rescorer(run.config)
    networks = {group.network_id: group.taught for each in rounds for group in each.groups}
    window = run.config.data.window
    index: dict[str, Any] = {
        "run": run_name(run.path),
        "live": live,
        "rounds": index_data(rounds, own, rescorer),
        "metrics": _metrics(run, [each.number for each in rounds]),
        "networks": list(networks),
        "weights": asdict(own.weights),
        "credit": own.credit,
        "terms": {term.name: term.weight for term in own.terms},
        "whatIf": _what_if(what_if[0], rescorer) if what_if and rescorer else None,
        "differing": sum(group.differing for each in rounds for group in each.groups),
        **CONSTANTS,
    }
    data = {f"network-{place}": network_data(each, window) for place, each in enumerate(networks.values())}
    for each in rounds:
        for group in each.groups:
            place = list(networks).index(group.network_id)
            data[f"round-{each.number}-{place}"] = round_data(group, own.weights, run.config.reward.tokenizer, rescorer)
    return render("viewer.html.jinja", SCRIPTS, ("page.css", "viewer.css"), {"title": index["run"], "index": index, "data": data})


def _what_if(name: str, rescorer: Rescorer) -> dict[str, Any]:
    return {"name": name, "weights": asdict(rescorer.weights), "credit": rescorer.credit}


def _metrics(run: StoredRun, numbers: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    """What stands beside a round's name, by round."""
    return {
        record["round"]: {label: record.get(key) for key, label in SHOWN_METRICS.items() if record.get(key) is not None}
        for record in run.metrics()
        if record["round"] in set(numbers)
    }
