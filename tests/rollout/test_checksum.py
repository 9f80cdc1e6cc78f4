"""Checksums: equal exactly where the values are, whatever a tensor was cut into, and wherever one bit differs."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rollout.checksum import added, block_checksum, differing, named_checksums, tensor_checksum

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


def tensor(shape, dtype=torch.float32, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def plain(values):
    """The definition once more, number by number, in Python's unbounded integers."""
    import struct

    mask, total = (1 << 64) - 1, 0
    for place, value in enumerate(values):
        bits = struct.unpack("<i", struct.pack("<f", value))[0]
        mixed = (bits + place * -0x61C8864680B583EB) * -0x4B47D0C5A1A6A2E3 & mask
        mixed ^= mixed >> 29
        total += mixed * -0x61C8864680B583EB
    return total & mask


def test_the_definition_by_another_way():
    values = [1.0, -2.5, 0.0, 3e7, -1e-20]
    assert tensor_checksum(torch.tensor(values)) == plain(torch.tensor(values).tolist())


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_one_flipped_bit_always_shows(dtype, data):
    values = tensor((5, 7), dtype)
    size = values.element_size()
    bits = values.clone().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[size])
    row, column = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 6))
    bit = data.draw(st.integers(0, 8 * size - 1))
    bits[row, column] ^= (1 << bit) if bit < 8 * size - 1 else -(1 << bit)
    assert tensor_checksum(bits.view(dtype)) != tensor_checksum(values)


@given(rows=st.integers(1, 9), columns=st.integers(1, 9), cut=st.data())
def test_the_parts_of_a_tensor_add_up_however_it_is_cut(rows, columns, cut):
    whole = tensor((rows, columns))
    r, c = cut.draw(st.integers(0, rows)), cut.draw(st.integers(0, columns))
    parts = [
        {"w": block_checksum(whole[rs, cs], whole.shape, rs.start, cs.start)}
        for rs in (slice(0, r), slice(r, rows))
        for cs in (slice(0, c), slice(c, columns))
        if whole[rs, cs].numel()
    ]
    assert added(parts) == {"w": tensor_checksum(whole)}


def test_order_counts_and_layout_does_not(monkeypatch):
    whole = tensor((6, 4))
    assert tensor_checksum(whole.flip(0)) != tensor_checksum(whole)
    assert tensor_checksum(whole.t().contiguous().t()) == tensor_checksum(whole)
    before = tensor_checksum(whole)
    monkeypatch.setattr("rollout.checksum.CHUNK", 5)
    assert tensor_checksum(whole) == before


def test_values_are_compared_in_the_type_of_the_copy():
    master = tensor((3, 3))
    assert tensor_checksum(master, torch.bfloat16) == tensor_checksum(master.to(torch.bfloat16))
    assert tensor_checksum(master, torch.bfloat16) != tensor_checksum(master)


def test_the_sign_of_zero_and_subnormal_numbers_do_not_count():
    zeros = torch.tensor([0.0, -0.0, 1e-40, -1e-40])
    assert tensor_checksum(zeros) == tensor_checksum(torch.zeros(4))


def test_scalars_and_more_than_two_axes():
    assert tensor_checksum(torch.tensor(2.5)) == tensor_checksum(torch.tensor([2.5]))
    cube = tensor((2, 3, 4))
    assert tensor_checksum(cube) == tensor_checksum(cube.reshape(2, 12))
    assert added([{"w": block_checksum(cube[:, :1], cube.shape)}, {"w": block_checksum(cube[:, 1:], cube.shape, column=1)}])[
        "w"
    ] == tensor_checksum(cube)


def test_a_block_beyond_its_tensor_is_refused():
    with pytest.raises(ValueError, match=r"row 2, column 0 reaches beyond \[3, 4\]"):
        block_checksum(torch.zeros(2, 4), (3, 4), row=2)


def test_names_that_lack_or_differ():
    pairs = [("a", torch.ones(2)), ("b", torch.zeros(2)), ("c", torch.ones(1))]
    ours = named_checksums(pairs)
    assert differing(ours, ours) == []
    assert differing(ours, {**ours, "b": 5}) == ["b"]
    assert differing(ours, {"a": ours["a"]}) == ["b", "c"]
