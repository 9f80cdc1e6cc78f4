"""What a memory is queried with: the controlled configuration, the ablations of Table 22, the grid of Fig. 6, full evidence, and
baselines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from memory_env.query.budgets import UNLIMITED, QueryBudgets

MAIN = "main"
GRID_S1 = (5, 10, 20)
GRID_S2 = (2, 4, 6)


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of querying. `table` groups the rows that are printed together; `dense` overrides the retrieval (None: as
    configured).

    Example: Variant("ablations", "w/o S2", QueryBudgets(s2_person=False, s2_group=False)).
    """

    table: str
    name: str
    budgets: QueryBudgets
    dense: bool | None = None

    @property
    def key(self) -> str:
        return self.table if self.table == MAIN else f"{self.table}/{self.name}"


def main_variant(budgets: QueryBudgets) -> Variant:
    return Variant(MAIN, MAIN, budgets)


def ablations(budgets: QueryBudgets) -> list[Variant]:
    """Table 22's rows, in its order."""
    off = replace(budgets, ask=False)
    return [
        Variant("ablations", "w/o S2", replace(off, s2_person=False, s2_group=False)),
        Variant("ablations", "w/o S1", replace(off, s1=False)),
        Variant("ablations", "w/o S2-group", replace(off, s2_group=False)),
        Variant("ablations", "w/o S2-person", replace(off, s2_person=False)),
        Variant("ablations", "full, no ASK", off),
        Variant("ablations", "full, ASK", replace(off, ask=True)),
    ]


def grid(budgets: QueryBudgets) -> list[Variant]:
    """S1 top-k 5/10/20 x S2 k 2/4/6 over one fixed memory; recall n = the S1 top-k, no ASK, source-k 1 (Appendix H)."""
    return [
        Variant("grid", f"S1 {s1} x S2 {s2}", replace(budgets, s1_recall=s1, s1_k=s1, s2_k=s2, source_k=1, ask=False))
        for s1 in GRID_S1
        for s2 in GRID_S2
    ]


def full_evidence() -> list[Variant]:
    """No budget at all: every message, and every record of the rows asked for. What a memory could answer at best."""
    return [
        Variant("full_evidence", "all messages and records", UNLIMITED),
        Variant("full_evidence", "all messages", replace(UNLIMITED, s2_person=False, s2_group=False)),
    ]


def baselines(budgets: QueryBudgets, dense_available: bool) -> list[Variant]:
    """Single-message retrieval without Select's Expand and without System 2, and everything that was said."""
    plain = replace(budgets, s1_recall=budgets.s1_k, expand_rounds=0, ask=False, s2_person=False, s2_group=False)
    found = [Variant("baselines", "BM25", plain, dense=False)]
    if dense_available:
        found.append(Variant("baselines", "Dense (MiniLM)", plain, dense=True))
    return [*found, Variant("baselines", "Full context", replace(plain, s1_all=True), dense=False)]
