"""From interval rows to a changelog: +1 at each start, -1 at each end, netted."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from thalweg.engine.changelog import Change, in_order
from thalweg.engine.native.joins import END, START
from thalweg.engine.native.spj import SelectProjectJoin
from thalweg.engine.native.staging import TS
from thalweg.engine.native.types import spark_type
from thalweg.plan.windows import FOREVER

QUERY = "query"


def clipped(rows: DataFrame, start: int | None) -> DataFrame:
    """A query submitted at `start` has an empty relation before."""
    if start is None:
        return rows
    begin = F.greatest(F.col(START), F.lit(start))
    return rows.withColumn(START, begin).filter(F.col(START) < F.col(END))


def _slots(query: SelectProjectJoin) -> list[str]:
    """Output columns named by type and number, so that rows of different queries fit one file."""
    seen: dict[str, int] = {}
    names = []
    for output in query.outputs:
        kind = spark_type(output.type).simpleString().translate(str.maketrans("(,)", "___"))
        seen[kind] = seen.get(kind, 0) + 1
        names.append(f"{kind}_{seen[kind]}")
    return names


def in_slots(rows: DataFrame, query: SelectProjectJoin) -> DataFrame:
    outputs = [
        F.col(f"o{position}").cast(spark_type(output.type)).alias(slot)
        for position, (output, slot) in enumerate(zip(query.outputs, _slots(query), strict=True))
    ]
    return rows.select(START, END, *outputs)


def netted_changes(
    intervals: DataFrame, queries: Mapping[int, SelectProjectJoin]
) -> dict[int, list[Change]]:
    """+1 at each start and -1 at each end, netted per query, instant and row."""
    row = [name for name in intervals.columns if name not in (START, END)]
    entered = intervals.select(F.col(START).alias(TS), *row, F.lit(1).alias("weight"))
    left = intervals.filter(F.col(END) != FOREVER)
    left = left.select(F.col(END).alias(TS), *row, F.lit(-1).alias("weight"))
    netted = entered.unionAll(left).groupBy(TS, *row).agg(F.sum("weight").alias("weight"))
    found: dict[int, list[Change]] = {number: [] for number in queries}
    slots = {number: _slots(query) for number, query in queries.items()}
    for change in netted.filter("weight <> 0").toLocalIterator():
        number = change["query"]
        if queries[number].is_stream and change["weight"] < 0:
            continue
        values = tuple(change[slot] for slot in slots[number])
        op = "+" if change["weight"] > 0 else "-"
        found[number] += [Change(change[TS], op, values)] * abs(change["weight"])
    return {number: in_order(changes) for number, changes in found.items()}
