"""How a stream's files are to be read: what a task has to be told of it."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.engine.sources.files.csv import CsvLines
from thalweg.engine.sources.files.json_lines import JsonLines
from thalweg.engine.sources.files.lines import LineFormat
from thalweg.plan.catalog import StreamDef

CSV = "csv"


@dataclass(frozen=True, slots=True)
class Form:
    stream: StreamDef
    name: str
    delimiter: str = ","
    header: bool = True

    def lines(self) -> LineFormat | None:
        """For one reader; None if the files hold tables."""
        match self.name:
            case "csv":
                return CsvLines(self.stream, delimiter=self.delimiter, header=self.header)
            case "json":
                return JsonLines(self.stream)
            case _:
                return None
