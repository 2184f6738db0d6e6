"""Auctions in Nexmark's proportions: of 50 events 1 person, 3 openings and 46 bids; and closings.

Columns follow COSMOS, section 3.2 (OpenAuction, ClosedAuction), and Nexmark (bids, persons). Every
item closes once, a log-normal while after it opened, with a median of two hours and a quarter to
four times of that as limits: 25 % stay open beyond `[Range 3 Hour]`, 6 % beyond `[Range 5 Hour]`.
Bids are for items that are open; hot items and hot bidders follow a Zipf distribution. Sellers,
bidders and buyers have registered before. A closing's buyer is any of them, not the best bidder.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.engine.generators.base import BLOCK_ROWS, Columns, Generator
from thalweg.engine.generators.closings import LONGEST, SHORTEST, Closings, durations
from thalweg.engine.generators.noise import Floats, Ints, between, uniform, zipf
from thalweg.engine.generators.settings import GeneratorError, Settings
from thalweg.plan.catalog import Field
from thalweg.plan.types import BIGINT, DOUBLE, TIMESTAMP, VARCHAR

PERSONS, OPENINGS, BIDS = 1, 3, 46  # of 50 events

CITIES = (
    ("Phoenix", "AZ"),
    ("Palo Alto", "CA"),
    ("San Francisco", "CA"),
    ("Boise", "ID"),
    ("Portland", "OR"),
    ("Bend", "OR"),
    ("Redmond", "WA"),
    ("Seattle", "WA"),
    ("Kent", "WA"),
    ("Cheyenne", "WY"),
)


@dataclass(frozen=True, slots=True)
class AuctionSettings(Settings):
    skew: float = 1.1
    duration: float = 7200.0  # seconds: the median time for which an item is open

    def __post_init__(self) -> None:
        super(AuctionSettings, self).__post_init__()
        if not 0 < self.duration < math.inf:
            raise GeneratorError("duration is seconds, more than 0")


class Auctions(Generator):
    name = "auctions"
    settings_type = AuctionSettings
    settings: AuctionSettings
    fields: ClassVar = {
        "OpenAuction": (
            Field("itemID", BIGINT),
            Field("sellerID", BIGINT),
            Field("start_price", DOUBLE),
            Field("timestamp", TIMESTAMP),
        ),
        "ClosedAuction": (
            Field("itemID", BIGINT),
            Field("buyerID", BIGINT),
            Field("timestamp", TIMESTAMP),
        ),
        "Bid": (
            Field("itemID", BIGINT),
            Field("bidderID", BIGINT),
            Field("price", DOUBLE),
            Field("timestamp", TIMESTAMP),
        ),
        "Person": (
            Field("personID", BIGINT),
            Field("name", VARCHAR),
            Field("city", VARCHAR),
            Field("state", VARCHAR),
            Field("timestamp", TIMESTAMP),
        ),
    }

    def columns(self, stream: str, index: Ints) -> Columns:
        match stream:
            case "OpenAuction":
                return self._openings(index)
            case "Bid":
                return self._bids(index)
            case "Person":
                return self._persons(index)
            case _:
                raise AssertionError(f"{stream} is drawn in parts")

    def parts(self, stream: str, start: int) -> Iterator[tuple[int, Columns]]:
        return self._closings(start) if stream == "ClosedAuction" else super().parts(stream, start)

    # --- when things happen: event n lies in the n-th slot of its stream, so time gives number ---

    def _slot_ms(self, share: int) -> float:
        return 1000.0 / (self.settings.rate * share / 50)

    def _times(self, stream: str, share: int, index: Ints) -> Ints:
        within = np.where(index == 0, 0.0, self._uniform(stream + "/time", index))
        offset = (index + within) * self._slot_ms(share)
        return self.settings.begin + offset.astype(np.int64)

    def _happened(self, share: int, times: Ints) -> Ints:
        """How many events of a stream have surely happened by then; the first one always has."""
        slots = (times - self.settings.begin) / self._slot_ms(share)
        return np.maximum(slots.astype(np.int64), 1)

    def _closing_times(self, items: Ints) -> Ints:
        open_ms = durations(self._uniform("duration", items)) * self.settings.duration * 1000
        opened = self._times("OpenAuction", OPENINGS, items)
        return opened + np.maximum(open_ms.astype(np.int64), 1)

    # --- streams ----------------------------------------------------------------------------------

    def _openings(self, items: Ints) -> Columns:
        times = self._times("OpenAuction", OPENINGS, items)
        return {
            "itemID": items,
            "sellerID": self._person("seller", items, times),
            "start_price": self._start_prices(items),
            "timestamp": times,
        }

    def _closings(self, start: int) -> Iterator[tuple[int, Columns]]:
        closings = Closings(
            lambda items: self._closing_times(items) - self.settings.begin,
            BLOCK_ROWS * self._slot_ms(OPENINGS),
            self.settings.duration * 1000 * LONGEST,
        )
        for first, (times, items) in closings.slices(start):
            yield first, self._closing_columns(times + self.settings.begin, items)

    def _closing_columns(self, times: Ints, items: Ints) -> Columns:
        return {
            "itemID": items,
            "buyerID": self._person("buyer", items, times),
            "timestamp": times,
        }

    def _bids(self, index: Ints) -> Columns:
        times = self._times("Bid", BIDS, index)
        items = self._hot_open_items(index, times)
        opened = self._times("OpenAuction", OPENINGS, items)
        age = (times - opened) / (self.settings.duration * 1000)
        raised = 1.0 + 4.0 * age + 0.2 * self._uniform("raise", index)
        return {
            "itemID": items,
            "bidderID": self._person("bidder", index, times),
            "price": np.round(self._start_prices(items) * raised, 2),
            "timestamp": times,
        }

    def _persons(self, index: Ints) -> Columns:
        city = pa.array(between(0, len(CITIES) - 1, self._uniform("city", index)))
        number = pc.cast(pa.array(index), pa.string())
        return {
            "personID": index,
            "name": pc.binary_join_element_wise("person", number, "-"),
            "city": pa.array([c for c, _ in CITIES]).take(city),
            "state": pa.array([s for _, s in CITIES]).take(city),
            "timestamp": self._times("Person", PERSONS, index),
        }

    # --- who and what -----------------------------------------------------------------------------

    def _uniform(self, column: str, index: Ints) -> Floats:
        return uniform(self.settings.seed, column, index)

    def _start_prices(self, items: Ints) -> Floats:
        return np.round(10.0 ** (3.0 * self._uniform("start_price", items)), 2)  # 1 to 1000

    def _person(self, role: str, index: Ints, times: Ints) -> Ints:
        """Somebody who has registered; the earlier, the more active."""
        known = self._happened(PERSONS, times)
        return zipf(self.settings.skew, known, self._uniform(role, index))

    def _hot_open_items(self, bids: Ints, times: Ints) -> Ints:
        """Items opened in the period before the present one, ranked by number.

        Two periods are as long as the shortest auction, so all of these are still open. In the
        first period, bids go to whatever has opened.
        """
        shortest_ms = self.settings.duration * 1000 * SHORTEST
        period = max(1, int(shortest_ms / 2 / self._slot_ms(OPENINGS)) - 1)
        opened = self._happened(OPENINGS, times)
        base = np.maximum(opened // period - 1, 0) * period
        candidates = np.where(opened < period, opened, period)
        return base + zipf(self.settings.skew, candidates, self._uniform("item", bids))
