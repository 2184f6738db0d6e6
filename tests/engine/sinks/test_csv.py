from pathlib import Path

from tests.engine.sinks.emissions import NULLS, PLAIN, emission, numbers

from thalweg.engine.sinks.csv import CsvSink


def opened(path: Path, committed: bytes | None = None) -> CsvSink:
    sink = CsvSink(path)
    sink.open(committed)
    return sink


def test_a_new_file_starts_with_the_columns_names(tmp_path: Path):
    sink = opened(tmp_path / "q.csv")
    quoted = (1, 'say "a, b"', *PLAIN[2:])
    sink.write(emission(1, (7, 1, *PLAIN), (8, -1, *NULLS)))
    sink.write(emission(2, (9, 1, *quoted), (9, 1, 1, "", *PLAIN[2:])))
    assert (tmp_path / "q.csv").read_text().splitlines() == [
        "_ts,_op,a,ts,X.A,price,day,at,ok",
        "7,+,1,one,0.5,1.50,2025-01-02,2025-01-02T03:04:05,true",
        "8,-,,,,,,,",
        '9,+,1,"say ""a, b""",0.5,1.50,2025-01-02,2025-01-02T03:04:05,true',
        '9,+,1,"",0.5,1.50,2025-01-02,2025-01-02T03:04:05,true',
    ]


def test_what_a_crash_left_behind_is_cut_the_names_too(tmp_path: Path):
    path = tmp_path / "q.csv"
    first = opened(path)
    nothing = first.progress()
    first.write(numbers(1, 1))
    first.close()
    again = opened(path, nothing)
    assert path.read_text() == ""
    again.write(numbers(1, 1))
    committed = again.progress()
    again.write(numbers(2, 2))
    again.close()
    opened(path, committed)
    assert path.read_text() == "_ts,_op,n\n1,+,1\n"


def test_a_file_that_was_there_before_is_only_continued(tmp_path: Path):
    path = tmp_path / "q.csv"
    path.write_text("_ts,_op,n\n0,+,0\n")
    opened(path).write(numbers(1, 1))
    assert path.read_text() == "_ts,_op,n\n0,+,0\n1,+,1\n"
