"""Parity shards: those of the libraries that write segments, and what they recover."""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.reliable_channel.segmentation.erasure import (
    ErasureCode,
    is_supported,
    parity_shards,
    recover,
)
from sds_core.reliable_channel.segmentation.field import (
    ELEMENTS,
    Field,
    cantor_field,
    polynomial_field,
)
from tests.support.properties import CAREFUL

VECTORS = json.loads(
    (Path(__file__).parents[2] / "vectors" / "reed_solomon.json").read_text("utf-8")
)


def shards_of(count: int, length: int) -> list[bytes]:
    """The data shards of reed_solomon.go."""
    return [
        bytes((i * 131 + j * 31 + (i * j) % 7) % 256 for j in range(length))
        for i in range(count)
    ]


@pytest.mark.parametrize(
    "vector",
    VECTORS,
    ids=lambda v: f"{v['code']}-{v['data_count']}-{v['parity_count']}",
)
def test_parity_is_that_of_klauspost_reedsolomon(vector: dict[str, str | int]) -> None:
    """Byte for byte, in its default and in its Leopard form."""
    data = shards_of(int(vector["data_count"]), int(vector["shard_bytes"]))
    code = ErasureCode(vector["code"])
    parity = parity_shards(code, data, int(vector["parity_count"]))
    assert len(parity) == vector["parity_count"]
    assert sha256(b"".join(parity)).hexdigest() == vector["parity_sha256"]


@pytest.mark.parametrize("code", ErasureCode)
def test_every_choice_of_enough_shards_recovers_the_data(code: ErasureCode) -> None:
    """All 56 choices of five of eight."""
    data = shards_of(5, 64)
    parity = parity_shards(code, data, 3)
    every = list(enumerate(data + parity))
    for chosen in combinations(every, 5):
        given_data = {index: shard for index, shard in chosen if index < 5}
        given_parity = {index - 5: shard for index, shard in chosen if index >= 5}
        assert recover(code, given_data, given_parity, 5, 3) == data


@CAREFUL
@given(
    code=st.sampled_from(ErasureCode),
    data_count=st.integers(1, 40),
    parity_count=st.integers(1, 24),
    seed=st.randoms(use_true_random=False),
)
def test_as_many_shards_as_data_recover_the_data(
    code: ErasureCode, data_count: int, parity_count: int, seed: Random
) -> None:
    """Whichever they are, if the code has such numbers."""
    if not is_supported(code, data_count, parity_count):
        with pytest.raises(ValueError, match=f"{parity_count} parity shards"):
            parity_shards(code, shards_of(data_count, 64), parity_count)
        return
    data = [seed.randbytes(9) for _ in range(data_count)]
    parity = parity_shards(code, data, parity_count)
    chosen = seed.sample(range(data_count + parity_count), data_count)
    given_data = {i: data[i] for i in chosen if i < data_count}
    given_parity = {
        i - data_count: parity[i - data_count] for i in chosen if i >= data_count
    }
    assert recover(code, given_data, given_parity, data_count, parity_count) == data


@pytest.mark.parametrize("code", ErasureCode)
def test_too_few_shards_are_refused(code: ErasureCode) -> None:
    """One less than there are data shards."""
    data = shards_of(4, 64)
    parity = parity_shards(code, data, 2)
    with pytest.raises(
        ValueError, match="3 data shards are missing, but only 2 parity"
    ):
        recover(code, {2: data[2]}, dict(enumerate(parity)), 4, 2)


@pytest.mark.parametrize(
    ("code", "data_count", "parity_count", "expected"),
    [
        (ErasureCode.CLASSICAL, 228, 28, True),
        (ErasureCode.CLASSICAL, 228, 29, False),
        (ErasureCode.LEOPARD, 224, 28, True),
        # 29 is rounded up to 32, and 225 + 32 points are too many.
        (ErasureCode.LEOPARD, 225, 29, False),
        (ErasureCode.LEOPARD, 128, 128, True),
        (ErasureCode.LEOPARD, 3, 4, False),
        (ErasureCode.CLASSICAL, 3, 4, True),
        (ErasureCode.CLASSICAL, 0, 1, False),
        (ErasureCode.LEOPARD, 1, 0, False),
    ],
)
def test_codes_have_as_many_shards_as_points(
    code: ErasureCode, data_count: int, parity_count: int, *, expected: bool
) -> None:
    """A byte has 256 values."""
    assert is_supported(code, data_count, parity_count) is expected


@pytest.mark.parametrize("field", [polynomial_field(), cantor_field()])
def test_field_obeys_the_laws_of_a_field(field: Field) -> None:
    """Products commute and distribute over XOR; 1 is neutral; inverses invert."""
    elements = range(ELEMENTS)
    multiples, inverses = field
    assert multiples[1] == bytes(elements)
    assert all(multiples[one][inverses[one]] == 1 for one in elements if one)
    for one in (2, 7, 91, 214, 255):
        for other in elements:
            product = multiples[one][other]
            assert product == multiples[other][one]
            assert multiples[one][other ^ 29] == product ^ multiples[one][29]
            assert field.product([one, other, 5]) == multiples[multiples[5][other]][one]
