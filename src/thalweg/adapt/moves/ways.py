"""All ways to move a range, by name. A new one is a file beside this one, and a line here."""

from __future__ import annotations

from thalweg.adapt.moves.mslb import Mslb
from thalweg.adapt.moves.precopy import PreCopy
from thalweg.adapt.moves.ptlb import Ptlb
from thalweg.adapt.moves.way import Way

PTLB, MSLB, PRECOPY = Ptlb.name, Mslb.name, PreCopy.name
_ALL: tuple[Way, ...] = (Ptlb(), Mslb(), PreCopy())
WAYS: dict[str, Way] = {way.name: way for way in _ALL}
