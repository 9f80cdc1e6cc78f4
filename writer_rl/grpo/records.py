"""A finished group as the lines that are kept of it; their form is described in writer_rl/run/rollout_files.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memory_env.query.protocol import EvidenceItem, EvidenceRow
from rewards.qa_results import QATranscript
from rollout.seeds import request_seed
from rollout.trajectory import Trajectory, completion_records
from writer_rl.grpo.advantages import MIN_SIGMA
from writer_rl.grpo.groups import Group
from writer_rl.run.rollout_files import COMPLETION_SCHEMA, QUESTION_SCHEMA


def trajectory_records(group: Group, run_seed: int, visit: int) -> list[dict[str, Any]]:
    """One JSON object per completion, with its rewards: the lines of ``trajectories/*.jsonl``.

    run_seed, visit: as `rollout.sampler.sample_groups` got them; with them a line names its random stream.
    """
    plain = [Trajectory(t.network_id, t.index, t.policy_version, tuple(s.step for s in t.steps)) for t in group.trajectories]
    records = []
    for record in completion_records(plain):
        g, t = record["trajectory"], record["position"]
        scored = group.trajectories[g].steps[t]
        reward, sigma = scored.reward, float(group.deviations[g, t])
        records.append(
            {
                "schema": COMPLETION_SCHEMA,
                **record,
                "length": len(group.trajectories[g].steps),
                "seed": request_seed(run_seed, group.network_id, g, t, record["policy_version"], visit),
                "prompt_tokens": len(scored.step.prompt_ids),
                "reward": {name: getattr(reward, name) for name in reward.__slots__},
                "qa_gain": group.qa.gains[g] if group.qa else None,
                "return": float(group.returns[g, t]),
                "sigma": sigma,
                "silent": sigma < MIN_SIGMA,
                "advantage": float(group.advantages[g, t]),
                **({"forked_from": 0} if group.shared_past and g else {}),
            }
        )
    return records


def question_records(group: Group) -> list[dict[str, Any]]:
    """One JSON object per terminal question of the group: the lines of ``questions/*.jsonl``; none where nothing was asked."""
    return [_question(group.network_id, transcript) for transcript in group.qa.transcripts] if group.qa else []


def _question(network_id: str, transcript: QATranscript) -> dict[str, Any]:
    question = transcript.question
    messages = next((e.evidence.messages for e in transcript.exchanges), ())
    return {
        "schema": QUESTION_SCHEMA,
        "network_id": network_id,
        "question_id": question.id,
        "category": question.category,
        "question": question.question,
        "gold": question.answer,
        "options": question.options or {},
        "error": transcript.error or None,
        "messages": [_item(item) for item in messages],
        "exchanges": list(_exchanges(transcript)),
    }


def _exchanges(transcript: QATranscript) -> Iterator[dict[str, Any]]:
    for exchange in transcript.exchanges:
        yield {
            "track": exchange.track,
            "trajectories": list(exchange.trajectories),
            "rows": [_row(row) for row in exchange.evidence.rows],
            "answer": exchange.answer.text,
            "option": exchange.answer.option,
            "correct": exchange.verdict.correct,
            "score": exchange.verdict.score,
            "reason": exchange.verdict.reason,
        }


def _row(row: EvidenceRow) -> dict[str, Any]:
    return {
        "owner": row.owner,
        "chains": [[_item(item) for item in chain] for chain in row.chains],
        "said": [_item(item) for item in row.said],
        "fallback": _item(row.fallback) if row.fallback else None,
    }


def _item(item: EvidenceItem) -> dict[str, Any]:
    shown = {"content": item.content, "owner": item.owner, "source": item.source, "ts": item.ts, "entry_id": item.entry_id}
    return shown if item.current else {**shown, "current": False}
