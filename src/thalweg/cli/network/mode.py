"""Who has the streams of a network: homes, or all nodes as peers."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Mode(StrEnum):
    homes = "homes"
    p2p = "p2p"


class Shedding(StrEnum):
    oldest = "oldest"
    least_matched = "least-matched"


ModeOption = Annotated[
    Mode,
    typer.Option(help="homes: a stream is fed at one node; p2p: at any, and peers join (DHTJoin)."),
]
CopiesOption = Annotated[
    int | None,
    typer.Option(
        min=0, help="Among peers: so many others have what a source has sent, 1 unless set."
    ),
]
RoomOption = Annotated[
    int | None,
    typer.Option(min=1, help="Among peers: tuples of a stream that a node keeps; none: all."),
]
SheddingOption = Annotated[
    Shedding | None,
    typer.Option(help="Which tuples go where there is no room: the oldest, unless set."),
]


def usual_master(mode: Mode) -> str:
    """Peers need no Spark; a node may have one all the same."""
    return "in-process" if mode is Mode.p2p else "local[1]"
