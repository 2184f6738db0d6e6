"""Result rows as JSON text, a whole frame at a time (docs/results.md says how values look).

The text is put together by Polars from columns of text; Python never sees a single row.
"""

from __future__ import annotations

import json

import polars as pl
import pyarrow as pa

from thalweg.engine.shared.frames import OP, TS, name
from thalweg.engine.shared.results.emission import Emission

# What JSON wants escaped within a string.
_SPECIAL = ['"', "\\", *map(chr, range(0x20))]
_ESCAPED = [json.dumps(c)[1:-1] for c in _SPECIAL]


def json_value(x: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """The column as JSON text; NULL as null."""
    match dtype:
        case pl.String():
            text = _quoted(x.str.replace_many(_SPECIAL, _ESCAPED))
        case pl.Date():
            text = _quoted(x.dt.to_string("iso"))
        case pl.Datetime():
            # Three or six digits of a fraction, where there is one.
            text = _quoted(x.dt.strftime("%Y-%m-%dT%H:%M:%S%.f"))
        case _ if dtype.is_numeric() or dtype == pl.Boolean:
            text = x.cast(pl.String)
        case _:
            raise TypeError(f"a result column of type {dtype} has no JSON form")
    return text.fill_null("null")


def _quoted(text: pl.Expr) -> pl.Expr:
    return pl.concat_str(pl.lit('"'), text, pl.lit('"'))


def json_rows(rows: pl.DataFrame, columns: tuple[str, ...]) -> pl.Expr:
    """The result's own columns (`c0`, …) as one JSON object."""
    parts: list[pl.Expr] = []
    for i, column in enumerate(columns):
        parts.append(pl.lit(("," if i else "") + json.dumps(column, ensure_ascii=False) + ":"))
        parts.append(json_value(pl.col(name(i)), rows.schema[name(i)]))
    return pl.concat_str(pl.lit("{"), *parts, pl.lit("}"))


def json_lines(emission: Emission) -> pl.Series:
    """For each row `{"query":…,"ts":…,"op":…,"row":{…}}` and a line end."""
    if not emission.rows.height:
        return pl.Series("line", [], pl.String)
    op = pl.when(pl.col(OP) > 0).then(pl.lit("+")).otherwise(pl.lit("-"))
    line = pl.concat_str(
        pl.lit(f'{{"query":{json.dumps(emission.query, ensure_ascii=False)},"ts":'),
        pl.col(TS).cast(pl.String),
        pl.lit(',"op":"'),
        op,
        pl.lit('","row":'),
        json_rows(emission.rows, emission.columns),
        pl.lit("}\n"),
    )
    return emission.rows.select(line.alias("line")).to_series()


def mark_line(emission: Emission) -> str:
    """The end mark of a version, as a line like those of rows, whose `op` is `end`."""
    assert emission.mark is not None
    mark = {"query": emission.query, "ts": emission.mark.instant, "op": "end", "row": {}}
    text = json.dumps(
        {**mark, "version": emission.mark.version}, ensure_ascii=False, separators=(",", ":")
    )
    return f"{text}\n"


def text_bytes(lines: pl.Series) -> memoryview:
    """Texts one after the other, without a copy per text."""
    if not len(lines):
        return memoryview(b"")
    array = lines.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    assert pa.types.is_large_string(array.type)
    assert array.null_count == 0
    _, offsets, values = array.buffers()
    ends = memoryview(offsets).cast("q")
    return memoryview(values)[ends[array.offset] : ends[array.offset + len(array)]]
