"""A running site: catalog, sources, ticks, results and sinks of one data directory."""

from thalweg.engine.site.errors import Busy, Forgotten, NotAtOnce, SiteError, Unknown, WrongUse
from thalweg.engine.site.opening import IN_PROCESS, open_site
from thalweg.engine.site.positions import Position
from thalweg.engine.site.site import Site

__all__ = [
    "IN_PROCESS",
    "Busy",
    "Forgotten",
    "NotAtOnce",
    "Position",
    "Site",
    "SiteError",
    "Unknown",
    "WrongUse",
    "open_site",
]
