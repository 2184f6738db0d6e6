"""thalweg test: a project's own tests: queries over recorded inputs, with the rows expected."""

from __future__ import annotations

import difflib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli import exact_json
from thalweg.cli.cql_inputs import Text, files_of, texts_of
from thalweg.cli.exits import BAD_INPUT, FAILED, CommandFailed, reporting
from thalweg.cli.output import complain_at, note, notes, plain

if TYPE_CHECKING:
    from thalweg.plan.catalog import Catalog, QueryDef

_INPUTS = (".csv", ".jsonl", ".parquet")
MOST_DIFF_LINES = 40


@dataclass(frozen=True, slots=True)
class Case:
    """A folder with `expected/QUERY.jsonl`, and `inputs/STREAM.csv` or .jsonl beside it."""

    folder: Path
    name: str

    @property
    def expected(self) -> dict[str, Path]:
        return {p.stem: p for p in sorted((self.folder / "expected").glob("*.jsonl"))}

    def input_of(self, stream: str) -> Path | None:
        for suffix in _INPUTS:
            path = self.folder / "inputs" / f"{stream}{suffix}"
            if path.exists():
                return path
        return None


def run_cases(
    folder: Annotated[Path, typer.Argument(help="Cases below it have a folder `expected`.")],
    only: Annotated[
        list[str] | None, typer.Option("--case", help="Only this one; may be repeated.")
    ] = None,
    cql: Annotated[
        list[str] | None,
        typer.Option(help="Files or folders of CQL; by default all .cql in FOLDER and above it."),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write what the queries say as what is expected.")
    ] = False,
) -> None:
    """Run queries over recorded inputs, and compare what they say with what is expected.

    A case is a folder with `inputs/STREAM.csv` (or .jsonl) and `expected/QUERY.jsonl`, in the form
    that `thalweg replay` prints. The CQL is the case's own *.cql, and that of the folders above it.
    Exits with 1 if a case fails, with 2 if one can't be run.
    """
    with reporting():
        cases = _cases(folder, only or [])
        failed = 0
        for case in cases:
            differences = _run(case, folder, cql or [], update)
            failed += bool(differences)
            mark = "[red]✗[/]" if differences else "[green]✓[/]"
            note(f"{mark} {plain(case.name)}")
            for difference in differences:
                for line in difference:
                    style = {"+": "green", "-": "red"}.get(line[:1], "default")
                    notes.print(f"  {line}", style=style, markup=False, soft_wrap=True)
        note(f"{len(cases) - failed} of {len(cases)} passed")
        if failed:
            raise typer.Exit(FAILED)


def _cases(folder: Path, only: Sequence[str]) -> list[Case]:
    if not folder.is_dir():
        raise CommandFailed(f"{folder} is not a folder", BAD_INPUT)
    found = [
        Case(path.parent, str(path.parent.relative_to(folder)))
        for path in sorted(folder.rglob("expected"))
        if path.is_dir()
    ]
    unknown = set(only) - {c.name for c in found}
    if unknown:
        names = ", ".join(c.name for c in found)
        raise CommandFailed(f"there is no case {sorted(unknown)[0]}: there are {names}", BAD_INPUT)
    cases = [c for c in found if not only or c.name in only]
    if not cases:
        raise CommandFailed(
            f"{folder} has no cases: make FOLDER/CASE/inputs/STREAM.csv and "
            "FOLDER/CASE/expected/QUERY.jsonl (empty), and run with --update",
            BAD_INPUT,
        )
    return cases


def _run(case: Case, root: Path, cql: Sequence[str], update: bool) -> list[list[str]]:
    """A unified diff for each query that says something else."""
    catalog = _catalog(_texts(case, root, cql))
    queries = _queries(case, catalog)
    said = _replayed(case, queries)
    differences = []
    for query in queries:
        path = case.expected[_key(case, query.name)]
        actual = said[query.name]
        if update:
            path.write_text("".join(f"{line}\n" for line in actual))
            continue
        expected = sorted((_normal(x, path, i) for i, x in _lines(path)), key=_order)
        found = sorted((_normal(x, path, i) for i, x in enumerate(actual, 1)), key=_order)
        if expected != found:
            lines = difflib.unified_diff(
                expected,
                found,
                str(path),
                f"what {query.name} says",
                lineterm="",
            )
            differences.append(_short(list(lines)))
    return differences


def _short(lines: list[str]) -> list[str]:
    left = len(lines) - MOST_DIFF_LINES
    return lines if left <= 0 else [*lines[:MOST_DIFF_LINES], f"… and {left} lines more"]


def _texts(case: Case, root: Path, cql: Sequence[str]) -> list[Text]:
    """Of the folders above the case first, of the case last."""
    if cql:
        files = files_of(cql)
    else:
        folders = [case.folder, *case.folder.resolve().parents]
        top = root.resolve()
        above = [f for f in folders if f.resolve() == top or top in f.resolve().parents]
        files = [p for f in reversed(above) for p in sorted(Path(f).glob("*.cql"))]
    if not files:
        raise CommandFailed(f"{case.name}: there is no .cql in {root} or the case", BAD_INPUT)
    return list(texts_of(files, []))


def _catalog(texts: Sequence[Text]) -> Catalog:
    from thalweg.api.applying import wanted
    from thalweg.api.pieces import Piece, Unreadable

    try:
        return wanted([Piece(t.cql, t.name, str(t.folder)) for t in texts]).catalog
    except Unreadable as error:
        for piece, diagnostic in error.found:
            complain_at(diagnostic.render(piece.cql, piece.name))
        raise CommandFailed("the CQL can't be run", BAD_INPUT) from None


def _queries(case: Case, catalog: Catalog) -> list[QueryDef]:
    from thalweg.plan.catalog import QueryDef

    found = []
    for name, path in case.expected.items():
        query = catalog.find(name)
        if not isinstance(query, QueryDef):
            known = ", ".join(q.name for q in catalog.queries()) or "none"
            raise CommandFailed(f"{path}: there is no query {name} (there are: {known})", BAD_INPUT)
        found.append(query)
    return found


def _key(case: Case, query: str) -> str:
    return next(name for name in case.expected if name.lower() == query.lower())


def _replayed(case: Case, queries: Sequence[QueryDef]) -> dict[str, list[str]]:
    """What each query says, as JSON lines."""
    from thalweg.engine.replay import Replay, ReplayError
    from thalweg.engine.replay import replay as run
    from thalweg.engine.sources.errors import SourceError

    recorded = [_over_inputs(q, case) for q in queries]
    out = io.BytesIO()
    try:
        run(Replay(queries=recorded, base_dir=case.folder), to=out)
    except (SourceError, ReplayError) as error:
        raise CommandFailed(f"{case.name}: {error}", BAD_INPUT) from None
    said: dict[str, list[str]] = {q.name: [] for q in queries}
    for line in out.getvalue().decode().splitlines():
        said[json.loads(line)["query"]].append(line)
    return said


def _over_inputs(query: QueryDef, case: Case) -> QueryDef:
    """The query with its streams read from the case's inputs."""
    from thalweg.plan.catalog import QueryDef, StreamDef
    from thalweg.plan.nodes import Node, Scan, transform

    def recorded(stream: StreamDef) -> StreamDef:
        path = case.input_of(stream.name)
        if path is None:
            raise CommandFailed(
                f"{case.name}: query {query.name} reads {stream.name}, and there is no "
                f"{case.folder}/inputs/{stream.name}.csv or .jsonl",
                BAD_INPUT,
            )
        return replace(stream, source=str(path.resolve()), options=())

    def over_inputs(node: Node) -> Node:
        return Scan(recorded(node.stream)) if isinstance(node, Scan) else node

    return QueryDef(query.name, transform(query.plan, over_inputs), query.text, query.from_now)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    return ((i, x) for i, x in enumerate(path.read_text().splitlines(), 1) if x.strip())


def _normal(line: str, path: Path, number: int) -> str:
    try:
        return exact_json.write(exact_json.read_by_value(line), ",", ":")
    except ValueError:
        raise CommandFailed(f"{path}:{number}: not JSON: {line[:80]!r}", BAD_INPUT) from None


def _order(line: str) -> tuple[int, str]:
    return int(json.loads(line)["ts"]), line
