"""The rewards as Eq. 7-21 define them: difflib and scipy, pair by pair, nothing cached, nothing pruned.

Written apart from the package (it imports nothing of it), to be compared with it and to be timed against.
States are dicts.
"""

import difflib
import math
import re
import unicodedata

import numpy as np
from scipy.optimize import linear_sum_assignment


def tokens(text):
    text = text.lower()
    return re.findall("[a-z0-9]+", text) + [c for c in text if "\u3400" <= c <= "\u9fff"]


def similarity(prediction, reference, tokenize=tokens):
    a, b = tokenize(prediction), tokenize(reference)
    if not a or not b:
        return 0.0
    shared = set(a) & set(b)
    f1 = 0.0
    if shared:
        precision, recall = len(shared) / len(set(a)), len(shared) / len(set(b))
        f1 = 2 * precision * recall / (precision + recall)
    return 0.60 * f1 + 0.40 * difflib.SequenceMatcher(None, " ".join(a), " ".join(b)).ratio()


def soft_f1(predicted, reference, weight):
    matrix = np.array([[weight(p, r) for r in reference] for p in predicted]).reshape(len(predicted), len(reference))
    rows, columns = linear_sum_assignment(matrix, maximize=True)
    matched = math.fsum(matrix[i, j] for i, j in zip(rows, columns, strict=True))
    return 2 * matched / (len(predicted) + len(reference))


def phi(predicted, reference, tokenize=tokens):
    """(score, macro, worst, owners). The order in which the best matching is sought is part of the value."""

    def kappa(p, r):
        if any(p[key] != r[key] for key in ("owner", "source", "layer")):
            return 0.0
        kbar = similarity(p["content"], r["content"], tokenize)
        return kbar if kbar >= 0.50 else 0.0

    def order(entry):
        return entry["source"], entry["layer"], " ".join(tokenize(entry["content"]))

    owners = {}
    for owner in sorted({entry["owner"] for entry in predicted + reference}):
        sides = [sorted((e for e in side if e["owner"] == owner), key=order) for side in (predicted, reference)]
        owners[owner] = soft_f1(*sides, kappa)
    if not owners:
        return 1.0, 1.0, 1.0, {}
    macro, worst = math.fsum(owners.values()) / len(owners), min(owners.values())
    return 0.80 * macro + 0.20 * worst, macro, worst, owners


def chain(predicted, reference, tokenize=tokens):
    def changes(state):
        entries = {entry["entry_id"]: entry for entry in state["entries"]}
        found = [(entries[edge["old"]], entries[edge["new"]]) for edge in state["update_edges"]]
        return sorted(found, key=order)

    def order(change):
        old, new = change
        return old["owner"], old["layer"], *(" ".join(tokenize(entry["content"])) for entry in (old, new))

    def weight(p, r):
        if (p[0]["owner"], p[0]["layer"]) != (r[0]["owner"], r[0]["layer"]):
            return 0.0
        old, new = (similarity(p[side]["content"], r[side]["content"], tokenize) for side in (0, 1))
        both = 0.50 * old + 0.50 * new
        return both if both >= 0.50 else 0.0

    if not reference["update_edges"]:
        return 0.0 if predicted["update_edges"] else 1.0
    return soft_f1(changes(predicted), changes(reference), weight)


def normalised(text):
    text = unicodedata.normalize("NFKC", text).lower()
    return " ".join(re.findall(r"\w+", text)) or " ".join(text.split())


def key(action):
    if not isinstance(action, dict) or action.get("action") not in ("ADD", "UPDATE", "NOOP"):
        return repr(action)
    fields = {"ADD": ("owner", "source", "layer"), "UPDATE": ("entry_id",), "NOOP": ()}[action["action"]]
    content = () if action["action"] == "NOOP" else (normalised(action.get("content", "")),)
    return action["action"], *(action.get(name, "") for name in fields), *content


def validity(actions, report, pre_state):
    """(json, schema, dup, stop, valid)"""
    n = report["attempted"]
    if n == 0:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    records = {entry["entry_id"]: entry for entry in pre_state["entries"]}
    novel = []
    for index, action in enumerate(actions):
        kind = action.get("action") if isinstance(action, dict) else None
        if kind == "NOOP":
            novel.append(len(actions) == 1)
        elif kind == "ADD":
            known = [key(earlier) for earlier in actions[:index]]
            known += [key({**entry, "action": "ADD"}) for entry in records.values()]
            novel.append(key(action) not in known)
        elif kind == "UPDATE":
            cited = records.get(action.get("entry_id"))
            novel.append(
                cited is not None
                and not cited["superseded_by"]
                and normalised(cited["content"]) != normalised(action.get("content", ""))
            )
        else:
            novel.append(False)
    last_novel = max((index for index, is_novel in enumerate(novel) if is_novel), default=None)
    json = 1.0 if report["json_valid"] else 0.0
    schema = min(1.0, max(0.0, report["schema_valid_actions"] / n))
    dup = min(1.0, len({key(action) for action in actions}) / n)
    stop = 1.0 if last_novel is not None and last_novel == len(actions) - 1 else 0.0
    return json, schema, dup, stop, 0.25 * json + 0.35 * schema + 0.25 * dup + 0.15 * stop


def penalty(report):
    faults = (not report["json_valid"], bool(report["errors"]), report["too_many_actions"], report["hit_length_limit"])
    return 0.0 - 0.25 * faults[0] - 0.15 * faults[1] - 0.10 * faults[2] - 0.10 * faults[3]


def step(actions, report, pre_state, post_state, reference, tokenize=tokens):
    """All local terms by the names of StepReward."""
    values = dict(zip(("json", "schema", "dup", "stop", "valid"), validity(actions, report, pre_state), strict=True))
    score, macro, worst, owners = phi(post_state["entries"], reference["entries"], tokenize)
    edges = chain(post_state, reference, tokenize)
    return values | {
        "owners": owners,
        "phi_macro": macro,
        "phi_worst": worst,
        "phi": score,
        "chain": edges,
        "mem": 0.80 * score + 0.20 * edges,
        "penalty": penalty(report),
    }
