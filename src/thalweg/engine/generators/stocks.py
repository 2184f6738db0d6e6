"""Stock quotes: each symbol's price is a geometric random walk; busy symbols quote more often.

The stream of COSMOS's three stock queries (section 1.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from thalweg.engine.generators.base import BLOCK_ROWS, Columns, Generator
from thalweg.engine.generators.noise import Floats, Ints, normal, uniform, zipf
from thalweg.engine.generators.settings import Settings
from thalweg.engine.generators.walk import bridge, walk_at
from thalweg.plan.catalog import Field
from thalweg.plan.types import BIGINT, DOUBLE, TIMESTAMP, VARCHAR

# (symbol, market, first price), the busiest first
SYMBOLS = (
    ("GOOGLE", "NasdaqGS", 380.0),
    ("Microsoft", "NasdaqGS", 27.0),
    ("Apple", "NasdaqGS", 76.0),
    ("IBM", "NYSE", 82.0),
    ("Intel", "NasdaqGS", 20.0),
    ("Siemens", "XETRA", 68.0),
    ("Cisco", "NasdaqGS", 23.0),
    ("Boeing", "NYSE", 79.0),
    ("SAP", "XETRA", 39.0),
    ("BP", "LSE", 5.8),
    ("Ford", "NYSE", 8.1),
    ("Nokia", "NYSE", 19.5),
    ("HSBC", "LSE", 9.7),
    ("Amazon", "NasdaqGS", 32.0),
    ("BMW", "XETRA", 42.0),
    ("Vodafone", "LSE", 1.2),
)

VOLATILITY = 2e-4  # of the price's logarithm, per square root of a second


@dataclass(frozen=True, slots=True)
class StockSettings(Settings):
    skew: float = 0.7


class Stocks(Generator):
    name = "stocks"
    settings_type = StockSettings
    fields: ClassVar = {
        "Quote": (
            Field("name", VARCHAR),
            Field("market", VARCHAR),
            Field("price", DOUBLE),
            Field("volume", BIGINT),
            Field("time", TIMESTAMP),
        ),
    }

    def columns(self, stream: str, index: Ints) -> Columns:
        """One block: the walks take one step per block."""
        seed, slot_ms = self.settings.seed, 1000.0 / self.settings.rate
        symbols = zipf(self.settings.skew, len(SYMBOLS), uniform(seed, "symbol", index))
        size = np.exp(4.0 + 1.2 * normal(seed, "volume", index))
        offset = (index + uniform(seed, "time", index)) * slot_ms
        names = pa.array(symbols)
        return {
            "name": pa.array([name for name, _, _ in SYMBOLS]).take(names),
            "market": pa.array([market for _, market, _ in SYMBOLS]).take(names),
            "price": self._prices(symbols, index),
            "volume": 100 * (1 + size.astype(np.int64)),  # round lots
            "time": self.settings.begin + offset.astype(np.int64),
        }

    def _prices(self, symbols: Ints, index: Ints) -> Floats:
        block = int(index[0]) // BLOCK_ROWS
        volatility = VOLATILITY * np.sqrt(BLOCK_ROWS / self.settings.rate)
        draws = normal(self.settings.seed, "step", index)
        prices = np.empty(len(index))
        for number, (name, _, first_price) in enumerate(SYMBOLS):
            rows = np.flatnonzero(symbols == number)
            path = self._path(f"walk/{name}", block, rows / BLOCK_ROWS, draws[rows])
            prices[rows] = first_price * np.exp(volatility * path)
        return np.maximum(np.round(prices, 2), 0.01)

    def _path(self, name: str, block: int, times: Floats, draws: Floats) -> Floats:
        seed = self.settings.seed
        start, end = walk_at(seed, name, block), walk_at(seed, name, block + 1)
        rest = normal(seed, f"{name}/rest", np.asarray([block], np.int64))
        return bridge(times, np.concatenate([draws, rest]), start, end)
