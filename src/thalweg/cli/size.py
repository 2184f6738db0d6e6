"""`thalweg size`: how many nodes a join between peers needs, or how complete so many make it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.client import AsJson
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.output import emit, emit_json
from thalweg.cql import CqlError, compile_script
from thalweg.overlay.p2p.from_plan import join_query
from thalweg.overlay.p2p.planning import Rate, explain
from thalweg.overlay.p2p.query import BadQuery, JoinQuery
from thalweg.overlay.p2p.sizing import Need, completeness, curve, nodes_for
from thalweg.plan.nodes import Node, resolution_us

_BAR = 40


def size(
    query: Annotated[
        str, typer.Argument(help="A query, with its streams (CREATE STREAM …), or a .cql file.")
    ],
    rate: Annotated[
        list[str], typer.Option(help="Tuples per second of a stream: X=60. Once for each.")
    ],
    memory: Annotated[
        list[str],
        typer.Option(help="Tuples of a stream that a node has room for: 10000, or X=10000."),
    ],
    wanted: Annotated[
        float | None, typer.Option("--completeness", help="The share of results that is wanted.")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Say how complete so many nodes make it.")
    ] = None,
    streams: Annotated[
        Path | None, typer.Option(help="A .cql file that creates the query's streams.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Size a network of peers: C = Π min(1, n·m(Sᵢ) / (Wᵢ·λᵢ)), for uniform values."""
    with reporting():
        if (wanted is None) == (nodes is None):
            raise CommandFailed("give either --completeness or --nodes", BAD_INPUT)
        plan = _plan(query, streams)
        rates = _numbers(rate, "--rate")
        try:
            join = join_query(plan, "q", "asker", {s: Rate(r) for s, r in rates.items() if s})
            needs = _needs(join, plan, rates, _numbers(memory, "--memory"))
            count = nodes_for(needs, wanted) if wanted is not None else nodes
        except (BadQuery, ValueError) as error:
            raise CommandFailed(str(error), BAD_INPUT) from None
        assert count is not None
        share = completeness(needs, count)
        points = curve(needs)
        if as_json:
            windows = [{"stream": n.stream, "tuples": n.tuples, "memory": n.memory} for n in needs]
            drawn = [{"nodes": n, "completeness": c} for n, c in points]
            emit_json({"nodes": count, "completeness": share, "windows": windows, "curve": drawn})
            return
        _show(join, needs, count, share, points)


def _show(
    join: JoinQuery,
    needs: Sequence[Need],
    count: int,
    share: float,
    points: Sequence[tuple[int, float]],
) -> None:
    for line in explain(join):
        emit(line)
    for need in needs:
        emit(
            f"{need.stream}: {need.tuples:,.0f} tuples in {need.window_s:g} s, "
            f"room for {need.memory:,} at each node"
        )
    emit(f"{count:,} nodes: completeness {share:.4g}")
    emit("")
    width = len(f"{points[-1][0]:,}")
    for n, c in points:
        emit(f"{n:>{width},}  {'█' * round(_BAR * c):<{_BAR}}  {c:.3f}")


def _plan(query: str, streams: Path | None) -> Node:
    text, name = query, "query"
    try:
        if query.endswith(".cql"):
            text, name = Path(query).read_text(encoding="utf-8"), query
        before = streams.read_text(encoding="utf-8") if streams is not None else ""
        catalog = compile_script(before, name=str(streams)).catalog
        if "create query" not in " ".join(text.lower().split()):
            head, found, select = _split_select(text)
            text = f"{head}CREATE QUERY q AS {select}" if found else text
        script = compile_script(text, catalog, name=name)
    except OSError as error:
        raise CommandFailed(f"{error.filename}: {error.strerror}", BAD_INPUT) from None
    except CqlError as error:
        raise CommandFailed(error.render(), BAD_INPUT) from None
    if len(script.queries) != 1:
        told = f"{name}: one query is sized at a time, and here are {len(script.queries)}"
        raise CommandFailed(told, BAD_INPUT)
    return script.queries[0].plan


def _split_select(text: str) -> tuple[str, bool, str]:
    """What comes before the SELECT that ends a text without CREATE QUERY."""
    at = text.lower().find("select")
    return (text[:at], True, text[at:]) if at >= 0 else (text, False, "")


def _numbers(given: Sequence[str], option: str) -> dict[str, float]:
    """By stream; under "" what holds for all others."""
    found: dict[str, float] = {}
    for word in given:
        stream, _, number = word.rpartition("=")
        try:
            found[stream] = float(number)
        except ValueError:
            told = f"{option} {word}: write a number, or STREAM=NUMBER"
            raise CommandFailed(told, BAD_INPUT) from None
    return found


def _needs(
    join: JoinQuery, plan: Node, rates: dict[str, float], memory: dict[str, float]
) -> list[Need]:
    instant_s = resolution_us(plan) / 1e6
    needs = []
    for leaf in join.leaves:
        rate, room = _of(rates, leaf.stream), _of(memory, leaf.stream)
        if rate is None or room is None:
            missing = "--rate" if rate is None else "--memory"
            raise CommandFailed(f"give {missing} {leaf.stream}=…", BAD_INPUT)
        needs.append(Need(leaf.stream, rate, leaf.window * instant_s, int(room)))
    return needs


def _of(numbers: dict[str, float], stream: str) -> float | None:
    by_name = {name.lower(): n for name, n in numbers.items()}
    return by_name.get(stream.lower(), by_name.get(""))
