"""A standing join whose one input is at another node, beside the same at one node."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from bench.nodes import NodeProcess, await_, network
from bench.tick import INSTANTS_PER_TICK, SCHEMA, WINDOW_TICKS, batches

JOIN = (
    "CREATE QUERY j AS SELECT ISTREAM O.itemID, O.price, C.buyerID "
    f"FROM O [Range {WINDOW_TICKS * INSTANTS_PER_TICK}], C [Now] WHERE O.itemID = C.itemID"
)


def measure(folder: Path, events: int, ticks: int, warm: int, seed: int) -> dict[str, float]:
    """CPU seconds a tick of all nodes: both inputs where the query is, and one elsewhere.

    In turn, batch by batch, so that both have the same of whatever else the machine does.
    """
    of_o, of_c = (f"{text};" for text in SCHEMA.strip().rstrip(";").split(";\n"))
    with (
        network(folder / "one", 1) as (alone,),
        network(folder / "two", 2) as (home, reader),
    ):
        alone.cql(of_o + of_c)
        home.cql(of_o)
        reader.cql(of_c)
        alone.cql(JOIN)
        reader.cql(JOIN)
        local, remote = Case([alone], alone, alone), Case([home, reader], home, reader)
        for number, (opened, closed) in enumerate(batches(events, seed), 1):
            upto = number * INSTANTS_PER_TICK
            for case in (local, remote):
                case.step(opened, closed, upto, counts=number > warm)
            if number == warm + ticks:
                break
        rows = [n.get("/queries/j")["rows"] for n in (alone, reader)]
        assert rows[0] == rows[1] > 0, f"{rows[0]} rows at one node, {rows[1]} at two"
    return {
        "one node": local.cpu_s / ticks,
        "two nodes": remote.cpu_s / ticks,
        "the home": remote.by_node[0] / ticks,
        "where the query is": remote.by_node[1] / ticks,
    }


class Case:
    def __init__(self, nodes: list[NodeProcess], has_o: NodeProcess, has_c: NodeProcess) -> None:
        self._nodes, self._has_o, self._has_c = nodes, has_o, has_c
        self.by_node = [0.0] * len(nodes)

    @property
    def cpu_s(self) -> float:
        return sum(self.by_node)

    def step(self, opened: pl.DataFrame, closed: pl.DataFrame, upto: int, *, counts: bool) -> None:
        before = [n.cpu_s for n in self._nodes]
        self._has_o.push("O", opened)
        self._has_c.push("C", closed)
        self._has_o.heartbeat("O", upto)
        self._has_c.heartbeat("C", upto)
        await_(lambda: self._has_c.frontier("j") >= upto, "the join", 0.1)
        if counts:
            for place, node in enumerate(self._nodes):
                self.by_node[place] += node.cpu_s - before[place]
