"""The plainest network: everyone is equally far from everyone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UniformNetwork:
    one_way_us: int = 10_000
    has_queues: bool = False

    def __post_init__(self) -> None:
        if self.one_way_us < 0:
            raise ValueError(f"a latency of {self.one_way_us} µs: it can't be negative")

    def latency_us(self, source: int, target: int) -> int:
        return 0 if source == target else self.one_way_us

    def arrival_us(self, now_us: int, source: int, target: int, size_bytes: int) -> int:
        return now_us + self.latency_us(source, target)
