"""One operator at this node: who wants it, what its inputs can do, and what follows."""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.overlay.alerts.messages import Operator
from thalweg.overlay.protocol import Address

Consumer = tuple[Address, str]


@dataclass(slots=True)
class Running:
    operator: Operator
    queries: list[str] = field(default_factory=list)
    leases: dict[Consumer, int] = field(default_factory=dict)  # -> when it runs out
    watchers: dict[Consumer, tuple[int, int]] = field(default_factory=dict)  # -> heard, its stamp
    answers: dict[str, tuple[int, int, bool]] = field(default_factory=dict)  # -> heard, stamp, able
    flows: bool = True  # a source's own word
    was_active: bool = False
    was_able: bool = True
    was_wanted: dict[str, bool] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        return bool(self.queries or self.leases)

    @property
    def able(self) -> bool:
        return self.flows and all(self.input_able(name) for name, _ in self.operator.inputs)

    def input_able(self, name: str) -> bool:
        return name not in self.answers or self.answers[name][2]

    def wants(self, name: str) -> bool:
        others = (other for other, _ in self.operator.inputs if other != name)
        return self.active and all(self.input_able(other) for other in others)
