import json
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.sources.landings import Landed, stream_of

from thalweg.engine.sources.files.json_lines import JsonLines
from thalweg.engine.sources.files.lines import Block

STREAM = stream_of(
    "CREATE STREAM S (a INTEGER, d DOUBLE, n DECIMAL(30, 2), t VARCHAR) TIMESTAMP BY ts"
)


def landed(tmp_path: Path, *lines: str | bytes) -> Landed:
    taken = Landed(tmp_path, STREAM)
    text = b"".join((x if isinstance(x, bytes) else x.encode()) + b"\n" for x in lines)
    taken.feed.push(JsonLines(STREAM).frame(Block("s.json", 0, text)))
    return taken


def test_objects_are_rows_and_missing_keys_null(tmp_path: Path):
    taken = landed(tmp_path, '{"a":1,"d":2.5,"n":1.25,"t":"x","ts":5}', '{"ts":6,"more":{"a":7}}')
    assert taken.rows == [(1, 2.5, Decimal("1.25"), "x"), (None,) * 4]


def test_a_decimal_never_passes_through_a_float(tmp_path: Path):
    digits = "1234567890123456789012345.67"
    clean = f'{{"n":{digits},"ts":1}}'
    taken = landed(tmp_path, clean, "poison", clean)
    assert [row[2] for row in taken.rows] == [Decimal(digits)] * 2


@pytest.mark.parametrize("other", [[], ["poison"]], ids=["fast", "one by one"])
def test_keys_may_be_spelt_in_any_case(tmp_path: Path, other: list[str]):
    taken = landed(tmp_path, '{"A":1,"TS":1,"T":"x"}', '{"a":2,"ts":2}', *other)
    assert [row[0] for row in taken.rows] == [1, 2]
    assert taken.rows[0][3] == "x"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "s.json, line 2: not JSON"),
        ("", None),
        ("[1]", "s.json, line 2: not a JSON object"),
        ("null", "s.json, line 2: not a JSON object"),
        ('{"ts":1} {"ts":2}', "s.json, line 2: not JSON"),
        (b'{"t":"\xff","ts":1}', "s.json, line 2: not JSON"),
        ('{"a":"x","ts":1}', "a: 'x' is not a valid INTEGER"),
        ('{"a":1.5,"ts":1}', "a: '1.5' is not a valid INTEGER"),
        ('{"a":[1],"ts":1}', "a: '[1]' is not a valid INTEGER"),
        ('{"t":5,"ts":1}', "t: '5' is not a valid VARCHAR"),
        ('{"a":4294967296,"ts":1}', "a: '4294967296' is not a valid INTEGER"),
        ('{"a":1}', "ts: the timestamp is missing"),
        ('{"d":NaN,"ts":1}', ""),
    ],
)
def test_a_poison_line_costs_itself_only(tmp_path: Path, line, reason):
    good = '{"a":1,"d":2,"n":0.1,"t":"x","ts":1}'
    taken = landed(tmp_path, good, line, good)
    assert taken.rows == [(1, 2.0, Decimal("0.10"), "x")] * 2
    found = [r["reason"] for r in taken.rejects]
    assert len(found) == (reason is not None)
    assert all(r.startswith(reason) for r in found)


def test_an_object_over_two_lines_beside_two_in_one_is_no_row(tmp_path: Path):
    taken = landed(tmp_path, '{"a":1,"ts":1} {"a":2,"ts":1}', '{"a":3', ',"ts":1}')
    assert taken.rows == []
    assert len(taken.rejects) == 3


values = st.fixed_dictionaries(
    {"ts": st.integers(0, 9)},
    optional={
        "a": st.integers(-(1 << 33), 1 << 33) | st.sampled_from([None, "7", 1.0, "x", True]),
        "d": st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.just("1e3"),
        "n": st.decimals(-1000, 1000, places=3).map(float) | st.just("1.5"),
        "t": st.text(max_size=3) | st.integers(),
    },
)


@given(st.lists(values, min_size=1, max_size=6))
def test_both_ways_of_reading_agree(rows):
    text = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    lines, block = JsonLines(STREAM), Block("s.json", 0, text)
    quick = lines._all_plain(text)
    if quick is not None:
        assert judged(quick) == judged(lines._one_by_one(block, block.numbered()))


def judged(frame: pl.DataFrame) -> list:
    from thalweg.engine.shared.ingest.normalise import normalise

    found = normalise(STREAM, frame)
    return [found.rows.rows(), found.rejected["_row"].to_list()]


odd_lines = st.sampled_from(
    [
        b'{"ts": 1, "a": "x"}',
        b'{"ts": 1, "a": "7"}',
        b'{"ts": 1, "d": "1e3"}',
        b'{"ts": 1, "n": "0.5"}',
        b'{"ts": 1, "t": 5}',
        b"no object",
        b"",
        b'{"TS": 1, "A": 5}',
        b"[1]",
    ]
)


@given(
    st.dictionaries(st.integers(0, 899), odd_lines, max_size=8),
    st.floats(-(2.0**52), 2.0**52, allow_nan=False),
)
def test_a_large_block_with_bad_lines_is_read_as_line_by_line(odd, number):
    plain = json.dumps({"ts": 2, "a": 1, "d": number, "n": 0.25, "t": "x"}).encode()
    text = b"".join(odd.get(i, plain) + b"\n" for i in range(900))
    lines, block = JsonLines(STREAM), Block("s.json", 0, text)
    expected = judged(lines._one_by_one(block, block.numbered()))
    assert judged(lines.frame(block)) == expected


def test_a_bad_value_costs_few_lines(monkeypatch: pytest.MonkeyPatch):
    slowly = []
    one_by_one = JsonLines._one_by_one

    def counted(self, block, lines):
        slowly.append(len(lines))
        return one_by_one(self, block, lines)

    monkeypatch.setattr(JsonLines, "_one_by_one", counted)
    plain = b'{"ts": 2, "a": 1}\n' * 32_768
    text = plain + b'{"ts": 2, "a": "x"}\n' + plain
    found = judged(JsonLines(STREAM).frame(Block("s.json", 0, text)))
    assert found[1] == [32_768]
    assert sum(slowly) <= 300
