"""All ways to move a range, by name. A new one is a file in this folder, and a line here."""

from __future__ import annotations

from thalweg.adapt.moves.ways.mslb import Mslb
from thalweg.adapt.moves.ways.precopy import PreCopy
from thalweg.adapt.moves.ways.ptlb import Ptlb
from thalweg.adapt.moves.ways.way import Way

PTLB, MSLB, PRECOPY = Ptlb.name, Mslb.name, PreCopy.name
_ALL: tuple[Way, ...] = (Ptlb(), Mslb(), PreCopy())
WAYS: dict[str, Way] = {way.name: way for way in _ALL}
