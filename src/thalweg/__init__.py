"""Thalweg: a continuous-query network on Spark.

Standing CQL queries are planned together, share what they have in common, and run as one.
This module stays light on purpose: every import of a sub-package runs it first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thalweg.api.session import Thalweg

__all__ = ["Thalweg"]


def __getattr__(name: str) -> Any:
    # Only who asks for the session pays for its imports.
    if name == "Thalweg":
        from thalweg.api.session import Thalweg

        return Thalweg
    raise AttributeError(f"module 'thalweg' has no attribute {name!r}")
