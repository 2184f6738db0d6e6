"""The terminal: a line for each change, as it becomes final; at least once.

Colours follow the terminal and NO_COLOR; without them, or piped, the text is the same.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rich.console import Console
from rich.text import Text

from thalweg.engine.shared.results.emission import Emission

MOST_ROWS = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIGNS = {1: ("+", "green"), -1: ("-", "red")}


class TerminalSink:
    """Shows up to `most` rows of a tick and says how many more there were.

    `resolution_us` turns instants into times of day; without it they are shown as numbers.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        most: int = MOST_ROWS,
        resolution_us: int | None = None,
    ) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)  # on stdout
        self._most = most
        self._resolution_us = resolution_us

    def open(self, committed: bytes | None) -> None:
        pass

    def write(self, emission: Emission) -> None:
        for ts, op, *values in emission.rows.head(self._most).iter_rows():
            self._console.print(self._line(emission, ts, op, values))
        hidden = emission.rows.height - self._most
        if hidden > 0:
            self._console.print(Text(f"{emission.query}  … and {hidden} more", style="dim"))
        if emission.mark is not None:
            said = f"{emission.query}  version {emission.mark.version} has ended"
            self._console.print(Text(said, style="dim"))

    def progress(self) -> bytes:
        return b""

    def close(self) -> None:
        pass

    def _line(self, emission: Emission, ts: int, op: int, values: list[object]) -> Text:
        sign, colour = _SIGNS[op]
        line = Text.assemble(
            (emission.query, "bold"),
            "  ",
            (self._moment(ts), "dim"),
            "  ",
            (sign, f"bold {colour}"),
        )
        for column, value in zip(emission.columns, values, strict=True):
            line.append(f"  {column}=", style="cyan")
            line.append("NULL" if value is None else str(value))
        return line

    def _moment(self, ts: int) -> str:
        if self._resolution_us is None:
            return str(ts)
        try:
            moment = _EPOCH + timedelta(microseconds=ts * self._resolution_us)
        except OverflowError:
            return str(ts)
        return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}"
