"""What sharing adds to plans as bytes: normal forms and representatives."""

from __future__ import annotations

from thalweg.plan.encoding import PLAN_TAGS, Tags
from thalweg.sharing.core import (
    Computed,
    Core,
    Grouped,
    Kept,
    NormalQuery,
    Residual,
    WithoutRepeats,
)
from thalweg.sharing.ranges import Bound, Range
from thalweg.sharing.representative import Representative

SHARING_TAGS: Tags = {
    **PLAN_TAGS,
    "bound": Bound,
    "range": Range,
    "residual": Residual,
    "core": Core,
    "grouped": Grouped,
    "kept": Kept,
    "computed": Computed,
    "distinct step": WithoutRepeats,
    "normal query": NormalQuery,
    "representative": Representative,
}
