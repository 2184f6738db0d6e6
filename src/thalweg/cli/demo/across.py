"""The auctions at several sites: each stream is at home at one of them, and queries read across."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from thalweg.cli.client import Service
from thalweg.cli.network.command import overview
from thalweg.cli.network.drawing import map_text
from thalweg.cli.network.running import Running, Wanted, start, stop
from thalweg.cli.output import notes
from thalweg.cql import parse_script, syntax

SITES = ("paris", "rome", "oslo", "lima", "quito", "cairo", "tokyo", "delhi")
# Those of the auctions that read streams of one, two or three sites.
QUERIES = (
    "precious_items",
    "daring_bids",
    "sold_quickly",
    "seattle_sells",
    "who_bought",
    "late_bids",
    "neighbours",
    "best_per_item",
)
_REFRESH_S, _LINE_S = 0.5, 5.0

Over = Callable[[], bool]


@contextmanager
def network(count: int, master: str, port: int) -> Iterator[list[Running]]:
    """A node for each site, in a directory that goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="thalweg-demo-"))
    wanted = [Wanted(SITES[i], SITES[i], master=master) for i in range(count)]
    started: list[Running] = []

    def begin(node: Wanted, join: Sequence[str], more: Sequence[str] = ()) -> None:
        started.append(start(node, folder, join, more))  # at once: who began is stopped

    try:
        with notes.status(f"starting {', '.join(w.name for w in wanted)}"):
            begin(wanted[0], (), ["--port", str(port)] if port else ())
            join = (started[0].address,)
            with ThreadPoolExecutor(count) as pool:
                list(pool.map(lambda node: begin(node, join), wanted[1:]))
        yield started
    finally:
        stop(started)
        shutil.rmtree(folder, ignore_errors=True)


def define(script: str, nodes: Sequence[Running]) -> None:
    """Streams in turn at the nodes; then queries in turn, each wherever its streams are."""
    streams, queries = statements(script)
    for texts in (streams, queries):
        for node, text in zip(cycle(nodes), texts, strict=False):
            with Service(node.url) as service:
                service.request("POST", "/queries", json={"cql": text, "name": "auctions.cql"})


def statements(script: str) -> tuple[list[str], list[str]]:
    """The auctions' streams, and the queries that are shown across sites."""
    streams, queries = [], []
    for statement in parse_script(script):
        text = script[slice(*statement.span)]
        if isinstance(statement, syntax.CreateStream):
            streams.append(text)
        elif statement.name is not None and statement.name.text in QUERIES:
            queries.append(text)
    return streams, queries


def look(url: str) -> dict[str, Any]:
    """The network and its queries, as any node tells."""
    found = overview(url)
    with Service(url) as service:
        kept = ("name", "node", "state", "rows", "frontier", "streams")
        rows = service.get("/queries")
        found["queries"] = [{k: q[k] for k in kept} for q in rows]
        found["events"] = sum(s["arrived"] for s in service.get("/streams"))
    return found


def show(url: str, console: Console, over: Over) -> dict[str, Any]:
    """A live screen on a terminal, a line every few seconds elsewhere; gives what was seen last."""
    seen, began, said = look(url), time.monotonic(), 0.0
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while not over():
            time.sleep(_REFRESH_S)
            seen = look(url)
            elapsed = time.monotonic() - began
            if console.is_terminal:
                live.update(rendered(seen), refresh=True)
            elif elapsed - said >= _LINE_S:
                said = elapsed
                console.print(f"{elapsed:4.0f} s  {_line(seen)}", soft_wrap=True, highlight=False)
    return seen


def rendered(seen: dict[str, Any]) -> Group:
    """The map, and the queries with the sites whose streams they read."""
    homes = {d["name"]: n["name"] for n in seen["nodes"] for d in n["defines"]}
    table = Table(title=_line(seen))
    for column in ("query", "at", "reads streams of"):
        table.add_column(column)
    table.add_column("rows", justify="right")
    table.add_column("final up to")
    for query in seen["queries"]:
        reads = sorted({homes.get(s, "?") for s in query["streams"]})
        told = (query["name"], query["node"], ", ".join(reads), f"{query['rows'] or 0:,}")
        table.add_row(*told, query["frontier"] or "")
    return Group(table, Text(map_text(seen)))


def _line(seen: dict[str, Any]) -> str:
    rows = sum(q["rows"] or 0 for q in seen["queries"])
    sent = sum(link["arrived"] for n in seen["nodes"] for link in n["links"])
    return f"{seen['events']:,} events, {sent:,} rows between sites, {rows:,} rows of results"
