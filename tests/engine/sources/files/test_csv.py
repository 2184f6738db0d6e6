from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.sources.landings import Landed, stream_of

from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.files.csv import CsvLines
from thalweg.engine.sources.files.lines import Block

STREAM = stream_of("CREATE STREAM S (a INTEGER, t VARCHAR) TIMESTAMP BY ts")


def landed(tmp_path: Path, text: bytes, stream=STREAM, **options) -> Landed:
    taken = Landed(tmp_path, stream)
    lines = CsvLines(stream, **options)
    taken.feed.push(lines.frame(lines.begin(Block("s.csv", 0, text))))
    return taken


def test_columns_are_found_by_name_in_any_order_and_case(tmp_path: Path):
    taken = landed(tmp_path, b"TS,other,T,a\n10,x,one,1\n11,y,two,2\n")
    assert taken.rows == [(1, "one"), (2, "two")]
    assert taken.stamps == [10, 11]


def test_without_a_header_columns_come_in_the_declared_order(tmp_path: Path):
    taken = landed(tmp_path, b"1;one;10\n2;two;11\n", header=False, delimiter=";")
    assert taken.rows == [(1, "one"), (2, "two")]


def test_empty_is_null_and_quoted_empty_is_an_empty_text(tmp_path: Path):
    taken = landed(tmp_path, b'a,t,ts\n,,1\n1,"",2\n2,"x,""y""",3\n')
    assert taken.rows == [(None, None), (1, ""), (2, 'x,"y"')]


def test_line_ends_of_any_system_byte_order_marks_and_blank_lines_are_taken(tmp_path: Path):
    taken = landed(tmp_path, b"\xef\xbb\xbfa,t,ts\r\n1,x,1\r\n\r\n2,y,2\r\n")
    assert taken.rows == [(1, "x"), (2, "y")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1,x", "s.csv, line 3: 2 values, not 3"),
        (b"1,x,2,3", "s.csv, line 3: 4 values, not 3"),
        (b'1,"x,2', "s.csv, line 3: a quote that is not closed"),
        (b'1,2,"x', "s.csv, line 3: a quote that is not closed"),
        (b"1,x\ry,2", "s.csv, line 3: a carriage return within the line"),
        (b"1,\xff,2", "s.csv, line 3: In CSV column"),
        (b"one,x,2", "a: 'one' is not a valid INTEGER"),
        (b"1,x,", "ts: the timestamp is missing"),
    ],
)
@pytest.mark.parametrize("before", [1, 40])
def test_a_poison_line_costs_itself_only(tmp_path: Path, line: bytes, reason: str, before: int):
    good = b"5,y,2\n"
    text = b"a,t,ts\n" + good + line + b"\n" + good * before + line + b"\n"
    taken = landed(tmp_path, text)
    assert taken.rows == [(5, "y")] * (1 + before)
    first, second = taken.rejects
    assert first["reason"].startswith(reason)
    assert second["reason"].startswith(reason.replace("line 3", f"line {4 + before}"))
    if "line 3" in reason:
        assert first["row"] == line.decode(errors="replace")


def test_all_lines_may_be_poison(tmp_path: Path):
    taken = landed(tmp_path, b"a,t,ts\n" + b"x\n" * 50)
    assert taken.rows == []
    assert len(taken.rejects) == 50


def test_a_quote_inside_a_value_is_just_that_wherever_it_stands(tmp_path: Path):
    taken = landed(tmp_path, b'a,t,ts\n1,x"y,1\n2,x"y,2\n')
    assert taken.rows == [(1, 'x"y'), (2, 'x"y')]


def test_a_file_that_lacks_a_column_is_refused_as_a_whole():
    with pytest.raises(SourceError, match=r"S: s.csv has no column t; its first line has a, ts"):
        CsvLines(STREAM).begin(Block("s.csv", 0, b"a,ts\n1,2\n"))


def test_a_file_of_one_line_has_no_rows(tmp_path: Path):
    assert landed(tmp_path, b"a,t,ts\n").rows == []


lines = st.lists(
    st.sampled_from(
        [b"1,x,5", b'2,"q",5', b",,5", b"", b"1", b'"', b'1,"', b'",5', b'"x"y,z,5', b"1,\r,2"]
    ),
    max_size=12,
)


@given(lines, st.integers(0, 12))
def test_where_blocks_are_cut_does_not_matter(found, cut):
    """Each line is judged by itself, so blocks can't change what is a row."""
    texts = [b"".join(line + b"\n" for line in part) for part in (found[:cut], found[cut:])]
    whole = CsvLines(STREAM, header=False)
    expected = whole.frame(whole.begin(Block("s.csv", 0, texts[0] + texts[1])))
    parts = CsvLines(STREAM, header=False)
    first = parts.frame(parts.begin(Block("s.csv", 0, texts[0]))).rows(named=True)
    second = parts.frame(Block("s.csv", len(found[:cut]), texts[1])).rows(named=True)
    assert [texted(r) for r in first + second] == [texted(r) for r in expected.rows(named=True)]


def texted(row: dict) -> dict:
    """Whether a column was typed at once depends on its block; what it says does not."""
    return {k: str(v) for k, v in row.items() if v is not None}
