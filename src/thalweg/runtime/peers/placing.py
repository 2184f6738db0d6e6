"""Scripts among peers: every node executes them alike, and the ring decides where joins run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from thalweg.cql import Script
from thalweg.engine.site import WrongUse
from thalweg.runtime.network.measuring import NodeMeasure
from thalweg.runtime.network.placing.deploying import Placement, Planned
from thalweg.runtime.network.scripts import Scripts
from thalweg.runtime.network.statements import Part
from thalweg.runtime.peers.scripts import check_no_rows

_PLACED = (
    "among peers the ring decides where joins run: submit without --strategy, --spread, --plan and "
    "--movable"
)


class PeerScripts(Scripts):
    def parts(
        self, text: str, name: str, arrived: Mapping[str, int] | None = None
    ) -> tuple[list[Part], dict[str, Placement]]:
        if arrived is not None:
            raise WrongUse(_PLACED)
        check_no_rows(text, name)
        return super().parts(text, name)

    def planned(
        self,
        text: str,
        name: str,
        strategy: str,
        measured: Sequence[NodeMeasure],
        bound_ms: float | None = None,
    ) -> tuple[Script, Planned]:
        raise WrongUse(_PLACED)

    def spread_parts(
        self, text: str, name: str, over: str, measured: Sequence[NodeMeasure]
    ) -> tuple[list[Part], dict[str, Placement]]:
        raise WrongUse(_PLACED)

    def swapped_parts(
        self, text: str, name: str, measured: Sequence[NodeMeasure], routing: str
    ) -> tuple[list[Part], dict[str, Placement]]:
        raise WrongUse(_PLACED)

    def movable_parts(self, text: str, name: str) -> tuple[list[Part], dict[str, Placement]]:
        raise WrongUse(_PLACED)
