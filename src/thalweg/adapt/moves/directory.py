"""Who is who in a partitioned query, and how long they wait."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.overlay.protocol import Address

_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Directory:
    """The fixed roles; all other nodes are processors."""

    splits: tuple[Address, ...]  # the home of each input
    union: Address
    manager: Address

    @property
    def split_nodes(self) -> tuple[Address, ...]:
        return tuple(dict.fromkeys(self.splits))

    def leaves_at(self, address: Address) -> list[int]:
        return [leaf for leaf, at in enumerate(self.splits) if at == address]


@dataclass(frozen=True, slots=True)
class Times:
    instant_us: int = 50_000
    read_us: int = _SECOND_US // 4  # between two requests for rows or results
    report_us: int = _SECOND_US
    retry_us: int = _SECOND_US // 2  # the manager, of a step that was not answered
    abort_us: int = 5 * _SECOND_US  # of a step before the decision
    forget_us: int = 8 * _SECOND_US  # what nobody asks for: given away, superseded, prepared
    lost_us: int = 5 * _SECOND_US  # without a report a processor counts as lost
    pause_us: int = _SECOND_US  # between two moves

    def __post_init__(self) -> None:
        if self.forget_us <= self.abort_us:
            raise ValueError("what a move has prepared must outlive its steps")
