"""Tuples that have landed and wait for a tick, wherever they lie."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from thalweg.engine.shared.state.inputs import Landed
from thalweg.engine.shared.state.segments import read_section, unpacked
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.messages import LANDED


def waiting(store: Store, stream: str | None = None) -> Iterator[tuple[int, Landed, pl.DataFrame]]:
    """In order of arrival, with their numbers; of one stream, or of all."""
    found = [(n, of) for n, of in store.inputs.landed() if stream in (None, of.stream)]
    contents = store.inputs.contents([number for number, _ in found])
    for number, landed in found:
        if landed.section is None:
            continue  # a promise
        if number in contents:
            yield number, landed, unpacked(contents[number])
        else:
            yield number, landed, read_section(store.files / LANDED, landed.section)
