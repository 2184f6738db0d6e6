"""A stream of numbered tuples as files of any form, cut in any way."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import polars as pl
from tests.engine.sources.landings import stream_of

from thalweg.plan.catalog import StreamDef

COLUMNS = "(n BIGINT, text VARCHAR)"


def numbered(source: str, options: str = "") -> StreamDef:
    given = f" OPTIONS ({options})" if options else ""
    return stream_of(f"CREATE STREAM S {COLUMNS} TIMESTAMP BY ts FROM '{source}'{given}")


def rows(first: int, last: int) -> list[tuple[int, str]]:
    return [(n, f"text {n}") for n in range(first, last)]


def write(path: Path, first: int, last: int) -> Path:
    """Tuples first … last - 1; all at one instant, so that nothing but their order tells them."""
    table = pl.DataFrame(rows(first, last), schema=["n", "text"], orient="row")
    table = table.with_columns(ts=pl.lit(7, dtype=pl.Int64))
    hidden = path.with_name("." + path.name)
    match path.name.partition(".")[2]:
        case "csv":
            table.write_csv(hidden)
        case "csv.gz":
            hidden.write_bytes(gzip.compress(table.write_csv().encode()))
        case "json":
            hidden.write_text("".join(json.dumps(row) + "\n" for row in table.to_dicts()))
        case "parquet":
            table.write_parquet(hidden, row_group_size=500)
    return hidden.rename(path)


def write_many(folder: Path, form: str, cuts: Sequence[int]) -> list[Path]:
    """Files part-0, part-1, … between the cuts, with modification times in disorder."""
    folder.mkdir(exist_ok=True)
    paths = [
        write(folder / f"part-{i}.{form}", first, last)
        for i, (first, last) in enumerate(pairwise(cuts))
    ]
    shuffled = random.Random(1).sample(range(len(paths)), len(paths))
    for path, when in zip(paths, shuffled, strict=True):
        os.utime(path, (1_600_000_000 + when,) * 2)
    return paths
