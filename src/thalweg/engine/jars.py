"""Jars that Spark does not bring along, in a folder outside the project: `make kafka` fills it."""

from __future__ import annotations

import os
from pathlib import Path


def jar_folder() -> Path:
    """THALWEG_JARS, or a folder in the user's cache."""
    chosen = os.environ.get("THALWEG_JARS")
    if chosen:
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "thalweg" / "jars"


def connector_jars() -> list[Path]:
    """Spark's connector for Kafka and what it needs; empty where it has not been fetched."""
    return sorted((jar_folder() / "kafka-connector").glob("*.jar"))


def broker_jars() -> list[Path]:
    """A Kafka broker, for tests."""
    return sorted((jar_folder() / "kafka-broker").glob("*.jar"))
