"""Who moves fragments at a site: one of these. The others, if they run, only say what they would.

One writer for each decision (docs/network.md): two controllers that both move fragments would undo
each other's work for ever. Light: every command knows these.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum


class Controller(StrEnum):
    manager = "manager"  # D-CAPE: one node looks at all loads
    partners = "partners"  # COSMOS 6: those with little ask those with much
    replanning = "replanning"  # SQPR: plans are made anew when they do not fit any more


class Conflict(ValueError):
    """Says what to do."""


def controller_of(wanted: str | None, configured: Collection[Controller]) -> Controller | None:
    """Who decides, of those that are configured. Raises Conflict."""
    if wanted is not None:
        try:
            return Controller(wanted)
        except ValueError:
            known = ", ".join(c.value for c in Controller)
            raise Conflict(f"there is no controller {wanted!r}: there are {known}") from None
    if len(configured) > 1:
        told = " and ".join(c.value for c in Controller if c in configured)
        raise Conflict(
            f"fragments of a site are moved by one controller, and {told} are set up: say which "
            "(controller); the others only advise"
        )
    return next(iter(configured), None)
