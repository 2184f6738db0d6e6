"""`thalweg size`: how many nodes a join between peers needs, or how complete so many make it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.client import AsJson


def size(
    query: Annotated[
        str, typer.Argument(help="A query, with its streams (CREATE STREAM …), or a .cql file.")
    ],
    rate: Annotated[
        list[str], typer.Option(help="Tuples per second of a stream: X=60. Once for each.")
    ],
    memory: Annotated[
        list[str],
        typer.Option(help="Tuples of a stream that a node has room for: 10000, or X=10000."),
    ],
    wanted: Annotated[
        float | None, typer.Option("--completeness", help="The share of results that is wanted.")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Say how complete so many nodes make it.")
    ] = None,
    streams: Annotated[
        Path | None, typer.Option(help="A .cql file that creates the query's streams.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Size a network of peers: C = Π min(1, n·m(Sᵢ) / (Wᵢ·λᵢ)), for uniform values."""
    from thalweg.cli.sizing import Request, run  # the compiler loads slowly

    run(Request(query, rate, memory, wanted, nodes, streams, as_json))
