"""The hash of a key: what it is, bit by bit, and that it is the same for what is equal."""

import math
import struct
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
import xxhash
from hypothesis import example, given
from hypothesis import strategies as st

from thalweg.engine.shared.frames import H
from thalweg.engine.shared.state import hashing, xxh64
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.hashing import hash_columns, key_hashes, with_hash
from thalweg.engine.shared.state.segments import BundleWriter
from thalweg.engine.shared.state.store import Store

EXACT = Context(prec=80)
EPOCH = datetime(1970, 1, 1)
NULL = 0x9E3779B185EBCA87


def decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal(unscaled).scaleb(-scale, EXACT)


def decimals(scale: int) -> st.SearchStrategy[Decimal]:
    widths = st.integers(1, 38).flatmap(lambda w: st.integers(-(10**w) + 1, 10**w - 1))
    whole = st.integers(-(10 ** (38 - scale)) + 1, 10 ** (38 - scale) - 1)
    return (widths | whole.map(lambda n: n * 10**scale)).map(lambda n: decimal(n, scale))


INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES: dict[pl.DataType, st.SearchStrategy] = {
    pl.Boolean(): st.booleans(),
    pl.Int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pl.Int64(): INT64,
    pl.UInt32(): st.integers(0, (1 << 32) - 1),
    pl.Float64(): st.floats() | INT64.map(float),
    pl.Float32(): st.floats(width=32),
    pl.Date(): st.dates(),
    pl.Datetime("us"): st.datetimes(),
    pl.String(): st.text(max_size=200),
    **{pl.Decimal(38, s): decimals(s) for s in (0, 2, 10, 18, 19, 30, 38)},
}
DTYPES = list(VALUES)
FRAME = pl.DataFrame({"c0": [1, 2, None], "c1": ["a", "b", "c"]})


def expected(value) -> int:
    """The definition, value by value."""
    match value:
        case None:
            return NULL
        case str():
            return xxhash.xxh64_intdigest(value.encode())
        case datetime():
            value = (value - EPOCH) // timedelta(microseconds=1)
        case date():
            value = (value - EPOCH.date()).days * 86_400 * 1_000_000
    if isinstance(value, float) and math.isnan(value):
        return xxhash.xxh64_intdigest(struct.pack("<Q", 0x7FF8000000000000))
    exact = None if value in (math.inf, -math.inf) else Fraction(value)
    if exact is not None and exact.denominator == 1 and -(1 << 63) <= exact < 1 << 63:
        return xxhash.xxh64_intdigest(struct.pack("<q", int(exact)))
    return xxhash.xxh64_intdigest(struct.pack("<d", value if exact is None else float(exact)))


def hashes(*columns: pl.Series) -> list[int]:
    found = hash_columns(columns)
    assert found.dtype == np.uint64
    return found.tolist()


# --- what it is


@pytest.mark.parametrize(
    ("values", "dtype", "known"),
    [
        ([0], pl.Int64, 0x34C96ACDCADB1BBB),
        ([0.0, -0.0], pl.Float64, 0x34C96ACDCADB1BBB),
        ([False], pl.Boolean, 0x34C96ACDCADB1BBB),
        ([date(1970, 1, 1)], pl.Date, 0x34C96ACDCADB1BBB),
        ([EPOCH], pl.Datetime("us"), 0x34C96ACDCADB1BBB),
        ([1], pl.Int32, 0x9F29CB17A2A49995),
        ([True], pl.Boolean, 0x9F29CB17A2A49995),
        ([1.0], pl.Float64, 0x9F29CB17A2A49995),
        ([Decimal("1.00")], pl.Decimal(38, 2), 0x9F29CB17A2A49995),
        ([-1], pl.Int64, 0x85D136ADB773C6C9),
        ([0.5], pl.Float64, 0x48CB5E118059DA42),
        ([Decimal("0.5")], pl.Decimal(38, 1), 0x48CB5E118059DA42),
        ([""], pl.String, 0xEF46DB3751D8E999),
        (["abc"], pl.String, 0x44BC2CF5AD770999),
    ],
)
def test_values_of_the_documentation(values, dtype, known):
    assert hashes(pl.Series(values, dtype=dtype)) == [known] * len(values)
    assert f"0x{known:016X}\n" in str(hashing.__doc__)


@pytest.mark.parametrize(
    ("values", "known"),
    [((1, "abc"), 0x1BE30E53C55885BE), ((1, None), 0x59FE8106077AEE1D)],
)
def test_rows_of_the_documentation(values, known):
    assert hashes(*(pl.Series([v]) for v in values)) == [known]
    assert f"0x{known:016X}\n" in str(hashing.__doc__)


@pytest.mark.parametrize(
    ("value", "dtype", "known"),
    [
        (None, pl.Int64, 0x9E3779B185EBCA87),
        (1 << 62, pl.Int64, 0x88804A4927A4014B),
        (-(1 << 63), pl.Int64, 0x3F425EACF01544E0),
        (math.nan, pl.Float64, 0xE9ADB09FEE122AAC),
        (math.inf, pl.Float64, 0xFA3D9D79A96B3705),
        (1e300, pl.Float64, 0x98E27B3D9C71F5E4),
        (2.0**63, pl.Float64, 0x859A2B0EAB5E8E8D),
        (0.1, pl.Float64, 0x30402B1BA8BA63D2),
        (Decimal("0.1"), pl.Decimal(38, 18), 0x30402B1BA8BA63D2),
        (Decimal("-12345.67"), pl.Decimal(38, 18), 0xD209FA48D2D512FC),
        (Decimal(10**37), pl.Decimal(38, 0), 0x9678BFAF42A4C0AE),
        (date(2024, 2, 29), pl.Date, 0xF6F60BC603388250),
        (datetime(2024, 2, 29, 12, 30, 0, 1), pl.Datetime("us"), 0xE5D059042922F05D),
        ("Großmünster", pl.String, 0xE2DC8AE6EEB9853B),
        ("Nobody inspects the spammish repetition", pl.String, 0xFBCEA83C8A378BF1),
        ("x" * 100, pl.String, 0x92F0DE5A88A3C094),
    ],
)
def test_values_that_may_never_change(value, dtype, known):
    few, many = (pl.Series([value] * n, dtype=dtype) for n in (1, xxh64.FEW + 1))
    assert hashes(few) == [known]
    assert set(hashes(many)) == {known}


@pytest.mark.parametrize(
    ("columns", "known"),
    [(3, 0x93494FF87D332474), (4, 0xB10E849302C1290B), (9, 0xF80A5FE8B79A899F)],
)
def test_rows_that_may_never_change(columns, known):
    """Of the numbers 0, 1, 2, …"""
    assert hashes(*(pl.Series([i]) for i in range(columns))) == [known]
    many = [pl.Series([i] * (xxh64.FEW + 1)) for i in range(columns)]
    assert set(hashes(*many)) == {known}


def test_the_name_stands_in_segments_and_in_the_book(tmp_path):
    assert hashing.HASHING == "xxh64-1"
    writer = BundleWriter(Folder(str(tmp_path)), "some.arrow")
    assert writer.add("table", with_hash(FRAME, [pl.col("c0")]).sort(H), 0, 0).hashing == "xxh64-1"
    writer.close()
    store = Store(tmp_path)
    assert store.all("SELECT value FROM meta WHERE name = 'hashing'") == [("xxh64-1",)]
    store.close()


@given(st.data())
def test_every_type_by_its_definition(data):
    dtype = data.draw(st.sampled_from(DTYPES))
    values = data.draw(st.lists(st.none() | VALUES[dtype], max_size=20))
    wanted = [expected(v) for v in values]
    column = pl.Series(values, dtype=dtype, strict=True)
    assert hashes(column) == wanted
    many = 1 + xxh64.FEW  # the other way of computing it
    assert hash_columns([pl.concat([column] * many)]).tolist() == wanted * many


@pytest.mark.parametrize("scale", [0, 1, 2, 18, 19, 38])
def test_decimals_at_the_limits(scale):
    power = 10**scale
    unscaled = [
        edge + near
        for limit in (0, 1 << 53, 1 << 63, (1 << 53) * power, (1 << 63) * power, 10**38 - 10)
        for edge in (limit, -limit)
        for near in (-power, -power // 2, -1, 0, 1, power // 2, power)
    ]
    values = [decimal(n, scale) for n in unscaled if abs(n) < 10**38]
    assert hashes(pl.Series(values, dtype=pl.Decimal(38, scale))) == [expected(v) for v in values]


def test_doubles_at_the_limits():
    edges = [2.0**53, 2.0**62, 2.0**63, 2.0**64, 2.0**1023, 5e-324, 0.5, 1.5]
    around = [f(x) for x in edges for f in (lambda x: math.nextafter(x, 0), float)]
    values = [*around, *(-x for x in around), math.inf, -math.inf, math.nan, -math.nan]
    assert hashes(pl.Series(values)) == [expected(v) for v in values]
    payload = np.array([0xFFF8000000000001, 0x7FF0000000000001], dtype=np.uint64).view(np.float64)
    assert hashes(pl.Series(payload)) == [expected(math.nan)] * 2


def test_texts_of_every_length():
    texts = [("0123456789é" * 20)[:length] for length in range(201)]
    assert hashes(pl.Series(texts)) == [expected(t) for t in texts]


@given(st.lists(st.lists(st.none() | INT64, min_size=3, max_size=3), min_size=1, max_size=9))
def test_a_row_is_the_hash_of_its_hashes(rows):
    columns = [pl.Series(values, dtype=pl.Int64) for values in rows]
    for column in columns:
        assert hashes(column) == [expected(v) for v in column]
    hashed = ([struct.pack("<Q", expected(v)) for v in row] for row in zip(*rows, strict=True))
    packed = [b"".join(words) for words in hashed]
    if len(columns) > 1:
        assert hashes(*columns) == [xxhash.xxh64_intdigest(p) for p in packed]


def test_no_values_are_zero():
    assert hashes() == [0]


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([0], dtype=pl.UInt64),
        pl.Series([b"abc"]),
        *(
            pl.Series([0]).cast(t)
            for t in (pl.Duration("us"), pl.Time, pl.Datetime("ns"), pl.Datetime("us", "UTC"))
        ),
    ],
    ids=lambda c: str(c.dtype),
)
def test_what_has_no_definition_is_refused(column):
    with pytest.raises(TypeError, match="no hash is defined for values of type"):
        hash_columns([column])


# --- the same for what is equal


@given(INT64)
@example(0)
@example((1 << 53) + 1)
def test_whole_numbers_of_all_types_are_equal(number):
    same = {*hashes(pl.Series([number], dtype=pl.Int64))}
    for scale in (0, 2, 19):
        if abs(number) * 10**scale < 10**38:
            same |= {*hashes(pl.Series([Decimal(number)], dtype=pl.Decimal(38, scale)))}
    if float(number) == number:
        same |= {*hashes(pl.Series([float(number)], dtype=pl.Float64))}
    if abs(number) < 1 << 31:
        same |= {*hashes(pl.Series([number], dtype=pl.Int32))}
    if number in (0, 1):
        same |= {*hashes(pl.Series([bool(number)]))}
    assert len(same) == 1


@given(st.integers(-(10**15), 10**15), st.integers(1, 22))
def test_a_decimal_is_the_double_that_is_nearest(unscaled, scale):
    value = decimal(unscaled, scale)
    of_decimal = hashes(pl.Series([value], dtype=pl.Decimal(38, scale)))
    assert of_decimal == hashes(pl.Series([float(value)], dtype=pl.Float64))


@given(st.dates())
def test_a_date_is_its_midnight(day):
    midnight = datetime(day.year, day.month, day.day)
    assert hashes(pl.Series([day])) == hashes(pl.Series([midnight], dtype=pl.Datetime("us")))


@pytest.mark.parametrize("dtype", [*DTYPES, pl.Null()], ids=str)
def test_null_is_the_same_in_every_type(dtype):
    assert hashes(pl.Series([None] * 3, dtype=dtype)) == [NULL] * 3
    assert hashes(pl.Series([], dtype=dtype)) == []


# --- however the column lies in memory


@given(st.data())
def test_slices_and_chunks(data):
    dtype = data.draw(st.sampled_from(DTYPES))
    values = data.draw(st.lists(st.none() | VALUES[dtype], min_size=1, max_size=30))
    cuts = sorted({0, len(values), *data.draw(st.lists(st.integers(0, len(values)), max_size=3))})
    wanted = [expected(v) for v in values]
    whole = pl.Series(values, dtype=dtype)
    assert [h for a, b in pairwise(cuts) for h in hashes(whole[a:b])] == wanted
    chunks = [pl.Series(values[a:b], dtype=dtype) for a, b in pairwise(cuts)]
    chunked = pl.concat(chunks, rechunk=False)
    assert hashes(chunked) == wanted
    assert hashes(chunked.slice(cuts[0] + 1)) == wanted[1:]


def test_long_columns_go_in_blocks():
    rows = 2 * hashing._BLOCK + 5
    numbers = pl.Series(range(rows))
    texts = numbers.cast(pl.String)
    seven = pl.Series([7])
    found = hash_columns([numbers, texts, seven])
    for part in (slice(0, 3), slice(hashing._BLOCK - 2, hashing._BLOCK + 2), slice(rows - 2, rows)):
        assert found[part].tolist() == hashes(numbers[part], texts[part], seven)


@pytest.mark.parametrize("different", [1, 3, 40, 4_000])
def test_texts_that_repeat_are_hashed_once_each(different):
    rows = 2 * hashing._BLOCK + 5
    texts = pl.Series([f"Größe {i * i % different}" for i in range(rows)])
    assert hashing._repeats(texts)
    chunked = pl.concat([texts.slice(1, 9_000), texts.slice(9_001)], rechunk=False)
    assert (
        hash_columns([chunked]).tolist() == xxh64.of_bytes(t.encode() for t in texts[1:]).tolist()
    )


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([f"text {i}" for i in range(20_000)]),
        pl.Series(["a", None] * 10_000),
        pl.Series([1, 2] * 10_000),
    ],
    ids=["different", "with NULLs", "numbers"],
)
def test_others_are_hashed_one_by_one(column):
    assert not hashing._repeats(column)


# --- in frames

KEYS = {
    "a column": [pl.col("c0")],
    "columns": [pl.col("c0"), pl.col("c1")],
    "an expression": [pl.col("c0") + 1],
    "a constant": [pl.lit(5)],
    "constants": [pl.lit(5), pl.lit("a")],
    "a constant and a column": [pl.lit(5), pl.col("c1")],
    "NULL": [pl.lit(None)],
    "nothing": [],
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_all_ways_to_hash_a_frame_agree(keys, rows):
    frame = FRAME.head(rows)
    columns = frame.with_columns(k.alias(f"k{i}") for i, k in enumerate(keys))
    by_row = [
        hashes(*(pl.Series([row[f"k{i}"]]) for i in range(len(keys))))[0]
        for row in columns.iter_rows(named=True)
    ]
    assert key_hashes(frame, keys).tolist() == by_row
    hashed = with_hash(frame, keys)
    assert hashed.columns == ["c0", "c1", H]
    assert hashed[H].dtype == pl.UInt64
    assert hashed[H].to_list() == by_row


# --- spread


@pytest.mark.parametrize(
    "column",
    [
        pl.Series(range(100_000)),
        pl.Series(range(0, 100_000 * 4096, 4096)),
        pl.Series(range(100_000)).cast(pl.String),
        pl.Series(range(100_000)).cast(pl.Float64) / 8,
    ],
    ids=["sequential", "strided", "short texts", "doubles"],
)
@pytest.mark.parametrize("columns", [1, 2])
def test_buckets_are_filled_evenly(column, columns):
    buckets = 100
    found = hash_columns([column] * columns)
    counts = np.bincount((found // np.uint64(-(-(1 << 64) // buckets))).astype(int))
    assert len(counts) == buckets
    mean = len(column) / buckets
    # Chi-square with 99 degrees of freedom: below 160 in all but one of ten thousand samples.
    assert ((counts - mean) ** 2 / mean).sum() < 160
