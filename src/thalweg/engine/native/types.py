"""SQL types as Spark knows them.

TIMESTAMP is Spark's TIMESTAMP_NTZ: naive, microseconds. INTERVAL is a BIGINT of microseconds.
"""

from __future__ import annotations

from pyspark.sql import types as spark_types

from thalweg.plan.types import MAX_DECIMAL_PRECISION, Kind, SqlType

_SPARK_TYPES: dict[Kind, spark_types.DataType] = {
    Kind.NULL: spark_types.BooleanType(),  # a file can't hold a column without a type
    Kind.BOOLEAN: spark_types.BooleanType(),
    Kind.INTEGER: spark_types.IntegerType(),
    Kind.BIGINT: spark_types.LongType(),
    Kind.DOUBLE: spark_types.DoubleType(),
    Kind.VARCHAR: spark_types.StringType(),
    Kind.DATE: spark_types.DateType(),
    Kind.TIMESTAMP: spark_types.TimestampNTZType(),
    Kind.INTERVAL: spark_types.LongType(),
}


def spark_type(sql_type: SqlType) -> spark_types.DataType:
    if sql_type.kind is Kind.DECIMAL:
        return spark_types.DecimalType(MAX_DECIMAL_PRECISION, sql_type.scale)
    return _SPARK_TYPES[sql_type.kind]
