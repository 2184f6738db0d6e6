"""When the next tick may begin: at once where little happens, at intervals where much does.

Two rules. Ticks have a budget of one for each interval, of which some can be saved up: so a lone
event is ticked over at once, and a steady trickle gathers for an interval, since a small tick costs
the same whatever is in it. And a tick that could say nothing, because no query's time moves, waits
for at most an interval: what lands meanwhile, such as the other side of a join, goes into it too.
"""

from __future__ import annotations

SAVED = 10.0  # ticks that may follow upon each other without a pause


class TickPace:
    """Knows no clock: `now` is in seconds, from wherever."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self._budget, self._since = SAVED, 0.0
        self._gathering_since: float | None = None

    def ticked(self, began: float) -> None:
        self._budget = self._budget_at(began) - 1
        self._since = began
        self._gathering_since = None

    def pause_s(self, now: float) -> float:
        """Until the next tick may begin."""
        return max(0.0, (1 - self._budget_at(now)) * self.interval_s)

    def gather_s(self, now: float) -> float:
        """How much longer a tick that could say nothing is to wait."""
        since = now if self._gathering_since is None else self._gathering_since
        return max(0.0, since + self.interval_s - now)

    def gathers(self, now: float) -> None:
        """Something has landed, and waits."""
        if self._gathering_since is None:
            self._gathering_since = now

    def rests(self) -> None:
        """Nothing waits."""
        self._gathering_since = None

    def _budget_at(self, now: float) -> float:
        if not self.interval_s:
            return SAVED
        return min(SAVED, self._budget + (now - self._since) / self.interval_s)
