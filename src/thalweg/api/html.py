"""Queries and sessions as a notebook shows them: what is now, then the last changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import date, datetime
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any

from thalweg.api.waiting import why_no_rows
from thalweg.engine.site import Site, SiteError
from thalweg.engine.site.status import Instants, QueryStatus
from thalweg.plan.catalog import QueryDef

SHOWN_ROWS = 10
_LEFT = ("VARCHAR", "DATE", "TIMESTAMP", "BOOLEAN", "instant")

_STYLE = """<style>
.thalweg{font:13px/1.45 system-ui,sans-serif;margin:.4em 0}
.thalweg table{border-collapse:collapse;margin-top:.3em}
.thalweg th,.thalweg td{padding:.15em .7em;text-align:right;border:0}
.thalweg thead th{border-bottom:1px solid #8888;vertical-align:bottom}
.thalweg th small{display:block;font-weight:normal;opacity:.6}
.thalweg td.t,.thalweg th.t{text-align:left}
.thalweg tr.plus td:nth-child(2){color:#1a7f37}.thalweg tr.minus td{opacity:.55}
.thalweg tr.minus td:nth-child(2){color:#cf222e}
.thalweg .dot{display:inline-block;width:.6em;height:.6em;border-radius:50%;margin-right:.4em}
.thalweg .more{opacity:.6}
</style>"""
_COLOURS = {
    "running": "#1a7f37",
    "parked": "#cf222e",
    "lost": "#cf222e",
    "finished": "#6e7781",
    "waiting": "#bf8700",
}
_COLOURS["filling"] = _COLOURS["waiting"]


def results_html(site: Site, query: QueryDef) -> str:
    """One query: what its relation holds now, then its last changes, newest last."""
    status = next((s for s in site.queries() if s.name == query.name), None)
    if status is None:
        return f'<div class="thalweg">{escape(query.name)} has been stopped</div>'
    changes = [c for page in site.tail(query.name, SHOWN_ROWS) for c in page.changes()]
    shown = changes[-SHOWN_ROWS:]
    heading = (
        f'<span class="dot" style="background:{_COLOURS[status.state]}"></span>'
        f"<b>{escape(query.name)}</b> {status.state}{_count(status)}"
        + (f", final up to {escape(status.frontier)}" if status.frontier else "")
    )
    at = Instants(status)
    body = "".join(_row((at.text(c.ts), c.op, *c.row), c.op) for c in shown)
    heads = [("_ts", "instant"), ("_op", "VARCHAR"), *status.columns]
    before = (status.rows or 0) - len(shown)
    more = f"the last changes, after {before:,} earlier ones" if before > 0 else "all changes"
    error = f"<div>{escape(status.error)}</div>" if status.error else ""
    table = f"<table><thead><tr>{_heads(heads)}</tr></thead><tbody>{body}</tbody></table>"
    changes_part = f'<div class="more">{more}</div>{table}' if shown else _nothing(site, status)
    present = _present(site, query, status)
    return f'{_STYLE}<div class="thalweg">{heading}{error}{present}{changes_part}</div>'


def _nothing(site: Site, status: QueryStatus) -> str:
    why = why_no_rows(asdict(status), [asdict(s) for s in site.streams()])
    return f'<div class="more">no rows yet: {escape(why)}</div>'


def _present(site: Site, query: QueryDef, status: QueryStatus) -> str:
    """What the relation holds, where that is known: a stream holds nothing."""
    try:
        held = site.content(query.name)
    except SiteError:
        return ""
    total = held.rows.height
    body = "".join(_row(row, "") for row in islice(held.tuples(), SHOWN_ROWS))
    left = total - SHOWN_ROWS
    more = f'<div class="more">and {left:,} rows more</div>' if left > 0 else ""
    head = f'<div class="more">now: {total:,} rows</div>'
    table = f"<table><thead><tr>{_heads(status.columns)}</tr></thead><tbody>{body}</tbody></table>"
    return head + (table if total else "") + more


def _count(status: QueryStatus) -> str:
    """Rows that nobody listens to are not counted."""
    return "" if status.rows is None else f", {status.rows:,} rows"


def session_html(site: Site, folder: Path) -> str:
    """All streams and queries of a session."""
    streams = [
        (s.name, s.state, f"{s.arrived:,}", f"{s.backlog:,}", s.watermark) for s in site.streams()
    ]
    queries = [
        (q.name, q.state, q.kind, "" if q.rows is None else f"{q.rows:,}", q.frontier)
        for q in site.queries()
    ]
    return (
        f'{_STYLE}<div class="thalweg"><b>Thalweg</b> {escape(str(folder))}'
        + _table(("stream", "state", "arrived", "backlog", "watermark"), streams)
        + _table(("query", "state", "kind", "rows", "final up to"), queries)
        + "</div>"
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    body = "".join(_row(row, "") for row in rows)
    columns = _heads([(head, "") for head in heads])
    return f"<table><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>" if body else ""


def _heads(columns: Iterable[tuple[str, str]]) -> str:
    return "".join(
        f"<th{_side(t in _LEFT or not t)}>{escape(n)}<small>{escape(t)}</small></th>"
        for n, t in columns
    )


def _row(values: Sequence[Any], op: str) -> str:
    kind = {"+": ' class="plus"', "-": ' class="minus"'}.get(op, "")
    return f"<tr{kind}>{''.join(_cell(v) for v in values)}</tr>"


def _cell(value: Any) -> str:
    if value is None:
        return '<td class="t"><i>NULL</i></td>'
    is_left = isinstance(value, str | date | datetime | bool)
    return f"<td{_side(is_left)}>{escape(str(value))}</td>"


def _side(is_left: bool) -> str:
    return ' class="t"' if is_left else ""
