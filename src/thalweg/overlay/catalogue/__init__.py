"""The network's catalogue: what is defined where, known at every node."""

from thalweg.overlay.catalogue.entry import KINDS, Entry, Kind
from thalweg.overlay.catalogue.messages import Changed, Drop, Forget, Put, Refused
from thalweg.overlay.catalogue.names import visible_names
from thalweg.overlay.catalogue.protocol import Catalogue
from thalweg.overlay.catalogue.repair import CatalogueSettings

__all__ = [
    "KINDS",
    "Catalogue",
    "CatalogueSettings",
    "Changed",
    "Drop",
    "Entry",
    "Forget",
    "Kind",
    "Put",
    "Refused",
    "visible_names",
]
