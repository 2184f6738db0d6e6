"""What nodes measure, tell their parents, and know of those below (COSMOS 4.2.2).

At the end of each window a node measures. What has changed by less than a factor of 1 + τ since it
was last told is not told again. A report goes to the parent, which passes it on to the grandparent
as one of its children's: so a node knows O(C²) others, and keeps nothing of anybody further below.

How often rows are due for what several want together, `demand.py` says: a node finds it in the
labels of the rows that pass through it, as all that anybody below needs does; or in rates.
"""

from __future__ import annotations

import numpy as np

from thalweg.overlay.coordinators.messages import UNKNOWN
from thalweg.overlay.protocol import Address, Effect, Send
from thalweg.overlay.trees import messages as say
from thalweg.overlay.trees.demand import Demand, Labels
from thalweg.overlay.trees.messages import Report
from thalweg.overlay.trees.state import Place, TreesState
from thalweg.placement.trees.view import View

SECOND_US = 1_000_000


class Reporting(TreesState):
    def _end_window(self, now_us: int) -> list[Effect]:
        seconds = max(1, now_us - self._window_us) / SECOND_US
        self._window_us = now_us
        for place in self.places.values():
            now = self._streams.counts(place.tree)
            place.labels = {
                label: (count - place.counted.get(label, 0)) / seconds
                for label, count in now.items()
                if count > place.counted.get(label, 0)
            }
            place.counted = dict(now)
        for place in self.places.values():
            self._fresh(place)
        return self._measure_delays(now_us)

    def _fresh(self, place: Place) -> None:
        """Tell anew what has changed; the next beat's answer carries it."""
        report = self._measured(place)
        kids = tuple((a, c.report) for a, c in place.children.items() if c.report is not None)
        if (
            place.report is None
            or kids != place.kids
            or differs(place.report, report, self.times.tau)
        ):
            place.report, place.kids = report, kids
            place.version += 1

    def _measured(self, place: Place) -> Report:
        tree, labels = place.tree, place.labels
        own = self._streams.reads(tree)
        below = sum(c.report.weight for c in place.children.values() if c.report is not None)
        weight = below + (0.0 if own is None else self._demand.rate(labels, (own,)))
        busy, rate, under = 0.0, 0.0, 0.0
        for other in self.places.values():
            if other.tree != tree:
                more = self._load(other)
                busy, rate, under = busy + more[0], rate + more[1], under + more[2]
        near = {*self._near(place)}
        delays = tuple((a, d) for a in sorted(near) if (d := self._distances.to(a)) != UNKNOWN)
        return Report(
            weight=float(weight),  # a sum over nobody is an integer, and would differ as bytes
            below=float(below),
            own=() if own is None else (own,),
            classes=self._classes(place),
            children=len(place.children),
            sends=float(self._sends(place)),
            filter_us=float(self.filter_us),
            send_us=float(self.send_us),
            other_busy=busy,
            other_rate=rate,
            other_below=under,
            delays_us=delays,
            hop_us=float(self.hop_us),
        )

    @property
    def _demand(self) -> Demand:
        return self._streams.demand

    def _classes(self, place: Place) -> tuple[int, ...]:
        below = [c.report.classes for c in place.children.values() if c.report is not None]
        return self._demand.union([self._streams.classes(place.tree), *below])

    def _sends(self, place: Place) -> float:
        reports = [c.report for c in place.children.values() if c.report is not None]
        return sum(self._demand.rate(place.labels, r.classes) for r in reports)

    def _load(self, place: Place) -> tuple[float, float, float]:
        """ρ, rate and weight below, of this node in one tree."""
        if not place.children:
            return 0.0, 0.0, 0.0
        rate = self._demand.rate(place.labels, self._classes(place))
        checks_us = self.filter_us * rate * len(place.children)
        busy = (checks_us + self.send_us * self._sends(place)) / SECOND_US
        below = sum(c.report.weight for c in place.children.values() if c.report is not None)
        return busy, rate, below

    # --- delays ---

    def _near(self, place: Place) -> list[Address]:
        """Those under whom this node might hang some day, and hangs now."""
        found = [*place.path[-2:], *place.siblings, *place.uncles]
        return [a for a in dict.fromkeys(found) if a != self._own]

    def _measure_delays(self, now_us: int) -> list[Effect]:
        near = list(dict.fromkeys(a for p in self.places.values() for a in self._near(p)))
        self._distances.forget_all_but(near)
        window_us = self.times.window_us
        asked = self._distances.to_ask(now_us, near, 8 * window_us, window_us // 2)
        return [Send(a, say.Ping(now_us)) for a in asked]

    # --- what a node knows ---

    def _view(self, place: Place, children: tuple[Address, ...]) -> tuple[View, list[Address]]:
        """Of itself, these children and theirs; and who is which row."""
        names, reports, above = [self._own], [self._measured(place)], [-1]
        taking_part = [c for c in children if c in place.children]
        for address in taking_part:
            report = place.children[address].report
            if report is not None:
                names.append(address)
                reports.append(report)
                above.append(0)
        for row, address in enumerate(list(names[1:]), 1):
            for kid, report in place.children[address].kids.items():
                if kid not in names:
                    names.append(kid)
                    reports.append(report)
                    above.append(row)
        return as_view(names, reports, above, place.labels, self._demand), names


def differs(told: Report, now: Report, tau: float) -> bool:
    if (told.own, told.classes, told.children) != (now.own, now.classes, now.children):
        return True
    if len(told.delays_us) != len(now.delays_us):
        return True
    pairs = [
        (told.weight, now.weight),
        (told.below, now.below),
        (told.sends, now.sends),
        (told.filter_us, now.filter_us),
        (told.send_us, now.send_us),
        (told.other_busy, now.other_busy),
        (told.other_below, now.other_below),
        (told.hop_us, now.hop_us),
    ]
    delays = dict(told.delays_us)
    pairs += [(delays.get(a, 0), d) for a, d in now.delays_us]
    return any(
        new != old and (min(old, new) <= 0 or max(old, new) >= (1 + tau) * min(old, new))
        for old, new in pairs
    )


def as_view(
    names: list[Address],
    reports: list[Report],
    above: list[int],
    labels: Labels,
    demand: Demand,
) -> View:
    """Reports as columns. What rows wait in a node anyway belongs to every link that begins there:
    delays are those from the first, who passes on, to the second."""
    delay = np.full((len(names), len(names)), np.nan)
    row = {name: i for i, name in enumerate(names)}
    for i, report in enumerate(reports):
        for address, us in report.delays_us:
            if address in row:
                delay[i, row[address]] = delay[row[address], i] = us / SECOND_US
    delay += np.array([[r.hop_us / SECOND_US] for r in reports])

    def column(values: list[float]) -> np.ndarray:
        return np.array(values, float)

    wanted = demand.columns(labels)
    counts = np.array([r.children for r in reports], np.int64)
    return View(
        parent=np.array(above),
        weight=column([r.weight for r in reports]),
        below=column([r.below for r in reports]),
        own=wanted.of([r.own for r in reports]),
        demand=wanted.of([r.classes for r in reports]),
        fan=counts[:, None],
        sends=column([r.sends for r in reports]),
        children=counts,
        filter_s=column([r.filter_us / SECOND_US for r in reports]),
        send_s=column([r.send_us / SECOND_US for r in reports]),
        delay_s=delay,
        other_busy=column([r.other_busy for r in reports]),
        other_rate=column([r.other_rate for r in reports]),
        other_below=column([r.other_below for r in reports]),
        join=wanted.join,
        rates=wanted.rates,
    )
