"""What the simulator asks of a network. Hosts are known by their index: 0, 1, 2, …

A network says how long the way takes on a fine day. Loss, reordering and the like are the weather's
affair (`sim.weather`), so every topology goes through the same storms.
"""

from __future__ import annotations

from typing import Protocol


class Network(Protocol):
    @property
    def has_queues(self) -> bool:
        """Whether a message's size, and the traffic before it, matter to its arrival."""

    def latency_us(self, source: int, target: int) -> int:
        """One way, for a message of no size through an idle network; never negative."""

    def arrival_us(self, now_us: int, source: int, target: int, size_bytes: int) -> int:
        """When a message sent now arrives; called once per copy, in order of sending.

        A network with queues remembers what it carries. One without adds the latency.
        """
