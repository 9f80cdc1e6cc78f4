"""Trunks: every row once, what they claim to share is shared, and no other way to part the rows leaves less to read."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from rollout.tree.trunks import QUERY_COST, Trunk, trunks

ROWS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=7).map(tuple), min_size=1, max_size=6)


def common(rows):
    length = 0
    while all(len(row) > length for row in rows) and len({row[length] for row in rows}) == 1:
        length += 1
    return length


def read(sequences, parts):
    """What a step reads, by the definition in the docstring."""
    cost = 0.0
    for part in parts:
        if part.length:
            cost += part.length * (1 + QUERY_COST * len(part.rows))
        cost += sum(len(sequences[row]) - part.length for row in part.rows)
    return cost


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    for parts in partitions(items[1:]):
        yield [[items[0]], *parts]
        for i, part in enumerate(parts):
            yield [*parts[:i], [items[0], *part], *parts[i + 1 :]]


def test_the_documented_example():
    assert trunks([(1, 2, 3, 4), (1, 2, 3, 5), (7,)]) == [Trunk((0, 1), 3), Trunk((2,), 0)]


@given(ROWS)
def test_every_row_stands_once_and_shares_what_it_says(sequences):
    parts = trunks(sequences)
    assert sorted(row for part in parts for row in part.rows) == list(range(len(sequences)))
    for part in parts:
        assert part.length <= common([sequences[row] for row in part.rows]) and (part.length > 0) <= (len(part.rows) > 1)


@given(ROWS)
def test_no_other_way_to_part_them_reads_less(sequences):
    """But for a row that ends amid what others share: with it, the trunk ends there; without, it may go on."""
    shortest = {common([one, other]) for one in sequences for other in sequences if one != other}
    if any(len(row) in shortest for row in sequences):
        return
    best = min(
        read(sequences, [Trunk(tuple(part), common([sequences[row] for row in part]) if len(part) > 1 else 0) for part in parts])
        for parts in partitions(list(range(len(sequences))))
    )
    assert read(sequences, trunks(sequences)) <= best + 1e-9


def test_equal_rows_share_all_and_rows_with_little_in_common_nothing():
    assert trunks([(1, 2, 3)] * 4) == [Trunk((0, 1, 2, 3), 3)]
    assert trunks([(1, *range(9)), (1, *range(20, 29))], query_cost=0.6) == [Trunk((0,), 0), Trunk((1,), 0)]
