"""Answers `thalweg size`: a join between peers, its windows, and what so many nodes can hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from thalweg.cli.exits import BAD_INPUT, CommandFailed, Mistakes, reporting
from thalweg.cli.output import emit, emit_json
from thalweg.cql import CqlError, compile_script
from thalweg.overlay.p2p.from_plan import join_query
from thalweg.overlay.p2p.planning import Rate, explain
from thalweg.overlay.p2p.query import BadQuery, JoinQuery
from thalweg.overlay.p2p.sizing import Need, by_chance, completeness, curve, nodes_for
from thalweg.plan.nodes import Node, resolution_us

_BAR = 40


class Request(NamedTuple):
    query: str
    rate: list[str]
    memory: list[str]
    wanted: float | None
    nodes: int | None
    streams: Path | None
    as_json: bool


def run(asked: Request) -> None:
    with reporting():
        if (asked.wanted is None) == (asked.nodes is None):
            raise CommandFailed("give either --completeness or --nodes", BAD_INPUT)
        plan = _plan(asked.query, asked.streams)
        rates = _numbers(asked.rate, "--rate")
        try:
            join = join_query(plan, "q", "asker", {s: Rate(r) for s, r in rates.items() if s})
            needs = _needs(join, plan, rates, _numbers(asked.memory, "--memory"))
            count = asked.nodes if asked.wanted is None else nodes_for(needs, asked.wanted)
        except (BadQuery, ValueError) as error:
            raise CommandFailed(str(error), BAD_INPUT) from None
        assert count is not None
        share, chance = completeness(needs, count), by_chance(needs, count)
        points = curve(needs)
        if asked.as_json:
            windows = [{"stream": n.stream, "tuples": n.tuples, "memory": n.memory} for n in needs]
            drawn = [{"nodes": n, "completeness": c} for n, c in points]
            told = {"nodes": count, "completeness": share, "by_chance": chance}
            emit_json({**told, "windows": windows, "curve": drawn})
            return
        _show(join, needs, count, (share, chance), points)


def _show(
    join: JoinQuery,
    needs: Sequence[Need],
    count: int,
    shares: tuple[float, float],
    points: Sequence[tuple[int, float]],
) -> None:
    for line in explain(join):
        emit(line)
    for need in needs:
        emit(
            f"{need.stream}: {need.tuples:,.0f} tuples in {need.window_s:g} s, "
            f"room for {need.memory:,} at each node"
        )
    share, chance = shares
    emit(f"{count:,} nodes: completeness {share:.4g}")
    if share - chance >= 0.0005:
        emit(f"{chance:.3f} if tuples come at random: windows are now and then fuller than that")
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
        raise Mistakes(error.render()) from None
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
