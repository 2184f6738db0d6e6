"""Every function and operator of `thalweg.plan.functions`, as Polars expressions."""

from thalweg.engine.shared.expressions.functions.conditions import CONDITIONS
from thalweg.engine.shared.expressions.functions.forms import Table
from thalweg.engine.shared.expressions.functions.moments import MOMENTS
from thalweg.engine.shared.expressions.functions.numbers import NUMBERS
from thalweg.engine.shared.expressions.functions.texts import TEXTS

IMPLEMENTATIONS: Table = {**CONDITIONS, **NUMBERS, **TEXTS, **MOMENTS}
