from pathlib import Path

import pytest

from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.csv import CsvSink
from thalweg.engine.sinks.jsonl import JsonLinesSink
from thalweg.engine.sinks.parquet import ParquetSink
from thalweg.engine.sinks.registry import open_sink
from thalweg.engine.sinks.terminal import TerminalSink


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("out.jsonl", JsonLinesSink),
        ("jsonl:out", JsonLinesSink),
        ("out.csv", CsvSink),
        ("CSV:out", CsvSink),
        ("out.parquet", ParquetSink),
        ("parquet:folder", ParquetSink),
        ("terminal:", TerminalSink),
    ],
)
def test_a_target_tells_its_form_by_scheme_or_ending(target: str, kind: type, tmp_path: Path):
    assert isinstance(open_sink(target, tmp_path), kind)


@pytest.mark.parametrize("target", ["out.txt", "jsonl:", "", "ftp:x"])
def test_what_is_no_sink_is_refused_with_what_would_do(target: str, tmp_path: Path):
    with pytest.raises(SinkError, match="write jsonl:FILE, csv:FILE, parquet:FOLDER, kafka:"):
        open_sink(target, tmp_path)
