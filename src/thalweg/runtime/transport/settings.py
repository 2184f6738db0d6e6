"""Limits and patience of a transport."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransportSettings:
    most_frame_bytes: int = 16 << 20
    most_queued: int = 2_000  # frames for one peer; then the oldest is dropped
    most_queued_bytes: int = 32 << 20
    stale_after_s: float = 10.0  # a frame that waited longer helps nobody
    connect_within_s: float = 3.0  # with the greetings
    backoff_s: float = 0.05  # the first pause after a failed connection; doubles
    longest_backoff_s: float = 3.0
    stuck_after_s: float = 15.0  # a peer that takes nothing for so long is dialled anew
    idle_after_s: float = 300.0  # a connection without messages is closed
    most_connections: int = 4_096  # from others

    def __post_init__(self) -> None:
        if min(self.most_frame_bytes, self.most_queued, self.most_queued_bytes) < 1:
            raise ValueError("limits of frames and queues must be above 0")
        if self.most_frame_bytes > self.most_queued_bytes:
            raise ValueError("a frame of the largest size must fit into a queue")
        times = (self.stale_after_s, self.connect_within_s, self.backoff_s, self.stuck_after_s)
        if min(*times, self.idle_after_s) <= 0 or self.longest_backoff_s < self.backoff_s:
            raise ValueError("times to wait must be above 0, and the longest the longest")
