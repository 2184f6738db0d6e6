"""Room sensors: temperature and humidity with a daily cycle, noise, and values that are missing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from thalweg.engine.generators.base import Columns, Generator
from thalweg.engine.generators.noise import Floats, Ints, normal, uniform, zipf
from thalweg.engine.generators.settings import GeneratorError, Settings
from thalweg.plan.catalog import Field
from thalweg.plan.types import BIGINT, DOUBLE, TIMESTAMP, VARCHAR

SENSORS_PER_ROOM = 4
DAY_MS = 86_400_000
WARMEST_HOUR = 15


@dataclass(frozen=True, slots=True)
class SensorSettings(Settings):
    skew: float = 0.0  # by default all sensors report equally often
    sensors: int = 100
    missing: float = 0.02  # share of values that are NULL

    def __post_init__(self) -> None:
        super(SensorSettings, self).__post_init__()
        if self.sensors < 1:
            raise GeneratorError("sensors is 1 or more")
        if not 0 <= self.missing <= 1:
            raise GeneratorError("missing is a share, 0 to 1")


class Sensors(Generator):
    name = "sensors"
    settings_type = SensorSettings
    settings: SensorSettings
    fields: ClassVar = {
        "Reading": (
            Field("sensor", BIGINT),
            Field("room", VARCHAR),
            Field("temperature", DOUBLE),
            Field("humidity", DOUBLE),
            Field("ts", TIMESTAMP),
        ),
    }

    def columns(self, stream: str, index: Ints) -> Columns:
        seed, settings = self.settings.seed, self.settings
        sensors = zipf(settings.skew, settings.sensors, uniform(seed, "sensor", index))
        offset = (index + uniform(seed, "time", index)) * (1000.0 / settings.rate)
        times = settings.begin + offset.astype(np.int64)
        rooms = sensors // SENSORS_PER_ROOM
        warmth = np.cos(2 * math.pi * (times / DAY_MS - WARMEST_HOUR / 24))
        own = 18.0 + 6.0 * uniform(seed, "room", rooms) + normal(seed, "bias", sensors) * 0.3
        temperature = own + 3.0 * warmth + normal(seed, "temperature", index) * 0.2
        # Warm air holds more water, so the same amount of it is less humid.
        humidity = 50.0 - 9.0 * warmth + normal(seed, "humidity", index) * 1.5
        return {
            "sensor": sensors,
            "room": self._room_names().take(pa.array(rooms)),
            "temperature": self._some_missing("temperature", np.round(temperature, 2), index),
            "humidity": self._some_missing("humidity", np.round(humidity, 1), index),
            "ts": times,
        }

    def _room_names(self) -> pa.Array:
        rooms = math.ceil(self.settings.sensors / SENSORS_PER_ROOM)
        return pa.array([f"room-{number}" for number in range(rooms)])

    def _some_missing(self, column: str, values: Floats, index: Ints) -> pa.Array:
        gone = uniform(self.settings.seed, column + "/missing", index) < self.settings.missing
        return pa.array(values, mask=gone)
