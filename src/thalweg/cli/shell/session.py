"""What is typed, statement by statement; what comes of it goes to stdout, mistakes to stderr."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.text import Text

from thalweg.cli import exact_json
from thalweg.cli.client import Service, Unreachable, quoted
from thalweg.cli.exits import CommandFailed
from thalweg.cli.follow import follow_results
from thalweg.cli.instants import Instants
from thalweg.cli.output import complain_at, emit, note, plain, stdout_console
from thalweg.cli.results import end_mark, present, show_content, shown
from thalweg.cli.shell.describe import describe, overview
from thalweg.cli.shell.lines import Lines
from thalweg.cli.submit import rows_changed, summary

HELP = r"""\d            streams, views, queries and sinks
\d NAME       one of them: columns, text, state
\results NAME what a query has said
\watch NAME   what it says, as it comes; Ctrl-C ends it
\watch SELECT …  the same of a query that stands only meanwhile
\explain NAME how it is computed
\i FILE       run the statements of a file
\?  \q        this list; leave
SELECT …;     its rows now, once; ISTREAM SELECT …; its rows as they come"""
KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "DISTINCT", "UNION", "EXCEPT", "INTERSECT"),
    *("WITH", "JOIN", "LEFT JOIN", "CROSS JOIN", "ORDER BY", "LIMIT", "FILTER", "EXISTS"),
    *("ISTREAM", "DSTREAM", "RSTREAM", "Range", "Rows", "Now", "Unbounded", "Slide", "Tumble"),
    *("Hop", "Every", "Session", "Partition By", "TOLERANCE", "window_start", "window_end"),
    *("CREATE", "OR REPLACE", "ALTER", "DROP", "STREAM", "RELATION", "TABLE", "VIEW", "QUERY"),
    *("SINK", "IF NOT EXISTS", "IF EXISTS", "PRIMARY KEY", "TIMESTAMP BY", "RESOLUTION"),
    *("LATENESS", "IDLE", "RETAIN", "REFRESH", "OPTIONS", "INTO", "ADD COLUMN", "FROM NOW"),
    *("INSERT INTO", "VALUES", "DELETE FROM", "COUNT", "SUM", "AVG", "MIN", "MAX", "BETWEEN"),
    *("LIKE", "CASE", "CAST", "INTERVAL", "BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL"),
    *("VARCHAR", "DATE", "TIMESTAMP"),
)
COMMANDS = (r"\d", r"\results", r"\watch", r"\explain", r"\i", r"\?", r"\q")
_ASKED = re.compile(r"\s*(SELECT|WITH|\()", re.IGNORECASE)  # a relation, read once
_BARE = re.compile(r"\s*(SELECT|ISTREAM|DSTREAM|RSTREAM|WITH|\()", re.IGNORECASE)
# A semicolon outside strings, quoted names and comments.
_END = re.compile(r"'[^']*'?|\"[^\"]*\"?|--[^\n]*|/\*.*?(?:\*/|\Z)|(;)", re.DOTALL)


class Session:
    def __init__(self, service: Service) -> None:
        self._service = service
        self.failed = False

    def words(self) -> Iterable[str]:
        """What Tab offers: keywords, commands, and the names of what stands."""
        yield from KEYWORDS
        yield from COMMANDS
        try:
            for kind in ("streams", "views", "queries"):
                for found in self._service.get(f"/{kind}"):
                    yield found["name"]
                    yield from (column for column, _ in found["columns"])
        except CommandFailed:
            return

    def run(self, lines: Lines) -> None:
        typed = ""
        while True:
            try:
                line = lines.read(is_first=not typed)
                if line is None:
                    break
                if not typed and line.lstrip().startswith("\\"):
                    if self._command(line.strip()):
                        return
                    continue
                typed = self._statements(f"{typed}{line}\n")
            except KeyboardInterrupt:
                typed = ""
                emit("")
            except Unreachable:
                raise
            except CommandFailed as error:
                self.failed, typed = True, ""
                error.tell()
        if typed.strip():
            self._statements(f"{typed};")

    def _statements(self, typed: str) -> str:
        """Run all whole statements; gives what is left of them."""
        start = 0
        for found in _END.finditer(typed):
            if found[1] is not None:
                self._statement(typed[start : found.start()])
                start = found.end()
        left = typed[start:]
        return left if left.strip() else ""

    def _statement(self, text: str) -> None:
        if not text.strip():
            return
        if _ASKED.match(text):
            found = self._answer("/query", text)
            if found is not None:
                show_content(found, None, as_json=False)
            return
        if _BARE.match(text):
            self._watch_query(text)
            return
        done = self._answer("/queries", text)
        if done is None:
            return
        _warn(done)
        for line in (*summary(done["changes"]), *done["notes"], *rows_changed(done["written"])):
            emit(line)

    def _answer(self, path: str, text: str) -> dict[str, Any] | None:
        """What the service says to a text; None if it has mistakes, which are told."""
        answer = self._service.try_request(
            "POST", path, json={"cql": text, "name": "shell", "folder": str(Path.cwd())}
        )
        if answer.is_error and "errors" in (problem := answer.json()):
            self.failed = True
            for error in problem["errors"]:
                complain_at(error["text"])
            return None
        done: dict[str, Any] = exact_json.read(self._service.checked(answer).text)
        return done

    def _watch_query(self, text: str) -> None:
        """A query that stands for as long as somebody looks."""
        done = self._answer("/queries", text)
        if done is None:
            return
        _warn(done)
        (name,) = done["queries"]
        note("rows as they come; Ctrl-C ends the query")
        try:
            self._watch(name)
        finally:
            self._service.request("DELETE", f"/queries/{quoted(name)}")

    def _command(self, line: str) -> bool:
        """Whether it was the last."""
        word, _, rest = line.partition(" ")
        name = rest.strip().removesuffix(";")
        match word:
            case r"\q":
                return True
            case r"\?" | r"\h":
                emit(HELP)
            case r"\d":
                emit(describe(self._service, name) if name else overview(self._service))
            case r"\results" if name:
                instants = self._instants(name)
                for _, row in present(self._service, name, None):
                    self._print(row, instants)
            case r"\watch" if _BARE.match(name):
                self._watch_query(name)
            case r"\watch" if name:
                self._watch(name)
            case r"\explain" if name:
                path = f"/queries/{quoted(name)}/explain"
                emit(self._service.request("GET", path).text.rstrip())
            case r"\i" if name:
                try:
                    self._statements(Path(name).read_text() + ";")
                except OSError as error:
                    raise CommandFailed(f"can't read {name}: {error.strerror}") from None
            case _:
                raise CommandFailed(rf"there is no command {line}: \? lists them")
        return False

    def _watch(self, name: str) -> None:
        instants = self._instants(name)
        try:
            for _, line in follow_results(self._service, name, None, give_up_s=10.0):
                self._print(line, instants)
        except KeyboardInterrupt:
            emit("")

    def _instants(self, query: str) -> Instants:
        return Instants(self._service.get(f"/queries/{quoted(query)}"))

    def _print(self, line: str | None, instants: Instants) -> None:
        if line is None:
            return
        change: dict[str, Any] = exact_json.read(line)
        sign = change["op"]
        if sign == "end":
            stdout_console().print(Text(end_mark(change, instants), style="dim"))
            return
        style = "bold green" if sign == "+" else "bold red"
        text = Text.assemble((f"{instants.text(change['ts'])}  ", "dim"), (f"{sign}  ", style))
        for column, value in change["row"].items():
            text.append(f"{column}=", style="cyan").append(f"{shown(value)}  ")
        stdout_console().print(text, soft_wrap=True)


def _warn(done: dict[str, Any]) -> None:
    for warning in done["warnings"]:
        note(f"[yellow]{plain(warning['text'])}[/]")
    for notice in done["notices"]:
        note(f"[yellow]note: {plain(notice['text'])}[/]")
