"""The join of one bucket range, in one shape: each new row probes what the others keep.

Rows enter in the order in which windows let them in. A combination is made when its last part
enters, so it is made once, whatever the shape. Source: the purge-join-insert of D-CAPE 3.1, on
intervals; MJoin (DHTJoin 2, seed 003).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from thalweg.adapt.moves.query import Combination, Query, Result
from thalweg.adapt.moves.state.shapes import Inputs, Shape
from thalweg.adapt.moves.state.tables import Table

Emits = Callable[[Combination], bool]  # whether a result is this node's to say


class RangeJoin:
    def __init__(self, query: Query, shape: Shape) -> None:
        self.query = query
        self.shape = shape
        self.tables: dict[Inputs, Table] = {inputs: Table() for inputs in shape.states()}
        self._root: Table | None = None
        if query.below is not None:  # what the operator on it remembers
            self._root = self.tables[shape.inputs] = Table()
        self.probed = 0  # candidates looked at, ever
        self.kept = 0  # rows inserted, ever
        self.made = 0  # results, ever
        self._nodes = {n.inputs: n for n in shape.nodes()}
        self._parents = {c.inputs: n for n in shape.nodes() for c in n.children}
        self._orders: dict[Inputs, list[Inputs]] = {}

    @property
    def work(self) -> int:
        return self.probed + self.kept + self.made

    def tick(self, entering: Iterable[Combination], number: int, emits: Emits) -> list[Result]:
        """Let rows in (each a combination of one), in the order of their starts."""
        self._orders = {}
        results: list[Result] = []
        for combination in entering:
            single = tuple([i for i, part in enumerate(combination[3]) if part is not None])
            self._enter(single, combination, emits, results)
        for table in self.tables.values():
            table.seal(number)
        self.made += len(results)
        return results

    def _enter(self, at: Inputs, new: Combination, emits: Emits, results: list[Result]) -> None:
        parent = self._parents[at]
        for joined in self._meet(new, self._order(parent, at)):
            if parent is not self.shape:
                self._enter(parent.inputs, joined, emits, results)
                continue
            if self._root is not None:
                self._root.insert(joined)
                self.kept += 1
            if emits(joined):
                results.append(self.query.result(joined))
        self.tables[at].insert(new)
        self.kept += 1

    def _meet(self, new: Combination, others: list[Inputs]) -> list[Combination]:
        found = [new]
        for other in others:
            candidates = self.tables[other].probe(new[2], new[0])
            self.probed += len(candidates) * len(found)
            pairs = (self.query.joined(left, right) for left in found for right in candidates)
            found = [pair for pair in pairs if pair is not None]
        return found

    def _order(self, parent: Shape, at: Inputs) -> list[Inputs]:
        """The siblings to probe: those that answer with the fewest rows first, afresh each tick."""
        if at not in self._orders:
            others = [c.inputs for c in parent.children if c.inputs != at]
            self._orders[at] = sorted(others, key=lambda o: (self.tables[o].fan_out(), o))
        return self._orders[at]

    def recompute(self, inputs: Inputs, upto: int, number: int) -> None:
        """Fill an empty intermediate from the states below it (D-CAPE 4.1: state recomputing).

        What its parts make together at `upto` or later; parts that have not entered are not there.
        """
        table = self.tables[inputs]
        first, *others = [child.inputs for child in self._nodes[inputs].children]
        for key in list(self.tables[first].keys()):
            found = list(self.tables[first].probe(key, upto))
            for other in others:
                candidates = self.tables[other].probe(key, upto)
                self.probed += len(candidates) * len(found)
                pairs = (self.query.joined(left, right) for left in found for right in candidates)
                found = [pair for pair in pairs if pair is not None]
            for combination in found:
                if combination[1] > upto:
                    table.insert(combination)
                    self.kept += 1
        table.seal(number)

    def live(self, at: int) -> list[Result]:
        """What the operator on the join remembers: results that were valid just before `at`."""
        rows = self._root.rows() if self._root is not None else ()
        return [self.query.result(c) for c in rows if c[1] >= at]

    def purge(self, upto: int) -> dict[Inputs, list[int]]:
        """Drop what nothing from `upto` on can meet; gives the segments that are gone."""
        return {inputs: gone for inputs, t in self.tables.items() if (gone := t.purge(upto))}

    def size(self, at: int) -> int:
        return sum(table.size(at) for table in self.tables.values())
