"""Network packets seen by three routers, X, Y and Z, for DHTJoin's queries (section 4.3.3).

The routers see traffic between the same hosts, so that `X.destIP = Y.destIP = Z.destIP` (type 1)
and `X.destIP = Y.destIP and Y.srcIP = Z.srcIP` (type 2) have results. The domain of a join
attribute and its default skew are those of DHTJoin's evaluation (chapter 5): 1000 values, Zipf 0.9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from thalweg.engine.generators.base import Columns, Generator
from thalweg.engine.generators.noise import Floats, Ints, uniform, zipf
from thalweg.engine.generators.settings import GeneratorError, Settings
from thalweg.plan.catalog import Field
from thalweg.plan.types import BIGINT, TIMESTAMP, VARCHAR

ROUTERS = ("X", "Y", "Z")
MOST_HOSTS = 65_536

# (protocol, share of the packets)
PROTOCOLS = (("TCP", 0.80), ("UDP", 0.17), ("ICMP", 0.03))
# (bytes, share): acknowledgements, odd sizes up to a full frame, full frames
SMALL, FULL = 40, 1500
SMALL_SHARE, ODD_SHARE = 0.45, 0.35

_COLUMNS = (
    Field("srcIP", VARCHAR),
    Field("destIP", VARCHAR),
    Field("size", BIGINT),
    Field("proto", VARCHAR),
    Field("ts", TIMESTAMP),
)


@dataclass(frozen=True, slots=True)
class PacketSettings(Settings):
    skew: float = 0.9
    hosts: int = 1000

    def __post_init__(self) -> None:
        super(PacketSettings, self).__post_init__()
        if not 2 <= self.hosts <= MOST_HOSTS:
            raise GeneratorError(f"hosts is 2 to {MOST_HOSTS}")


class Packets(Generator):
    name = "packets"
    settings_type = PacketSettings
    settings: PacketSettings
    fields: ClassVar = dict.fromkeys(ROUTERS, _COLUMNS)

    def columns(self, stream: str, index: Ints) -> Columns:
        settings = self.settings
        slot_ms = 1000.0 / (settings.rate / len(ROUTERS))
        sources = zipf(settings.skew, settings.hosts, self._uniform(stream, "src", index))
        # A host does not send to itself: the destination is drawn among the others.
        others = zipf(settings.skew, settings.hosts - 1, self._uniform(stream, "dest", index))
        destinations = others + (others >= sources)
        offset = (index + self._uniform(stream, "time", index)) * slot_ms
        return {
            "srcIP": self._addresses(sources),
            "destIP": self._addresses(destinations),
            "size": self._sizes(stream, index),
            "proto": self._protocols(stream, index),
            "ts": settings.begin + offset.astype(np.int64),
        }

    def _uniform(self, router: str, column: str, index: Ints) -> Floats:
        return uniform(self.settings.seed, f"{router}/{column}", index)

    def _addresses(self, hosts: Ints) -> pa.Array:
        names = [f"10.0.{n // 256}.{n % 256}" for n in range(self.settings.hosts)]
        return pa.array(names).take(pa.array(hosts))

    def _sizes(self, router: str, index: Ints) -> Ints:
        chosen = self._uniform(router, "size", index)
        odd = SMALL + ((chosen - SMALL_SHARE) / ODD_SHARE * (FULL - SMALL)).astype(np.int64)
        sizes = np.where(chosen < SMALL_SHARE, SMALL, odd)
        return np.where(chosen < SMALL_SHARE + ODD_SHARE, sizes, FULL)

    def _protocols(self, router: str, index: Ints) -> pa.Array:
        bounds = np.cumsum([share for _, share in PROTOCOLS])[:-1]
        number = np.searchsorted(bounds, self._uniform(router, "proto", index), side="right")
        return pa.array([name for name, _ in PROTOCOLS]).take(pa.array(number))
