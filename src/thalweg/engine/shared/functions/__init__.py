"""Every function and operator of `thalweg.plan.functions`, as Polars expressions."""

from thalweg.engine.shared.functions.conditions import CONDITIONS
from thalweg.engine.shared.functions.forms import Table
from thalweg.engine.shared.functions.moments import MOMENTS
from thalweg.engine.shared.functions.numbers import NUMBERS
from thalweg.engine.shared.functions.texts import TEXTS

IMPLEMENTATIONS: Table = {**CONDITIONS, **NUMBERS, **TEXTS, **MOMENTS}
