"""Queries over their recorded sources, to the end, with any of the engines."""

from thalweg.engine.replay.job import ENGINES, Replay, ReplayError, Status
from thalweg.engine.replay.run import replay

__all__ = ["ENGINES", "Replay", "ReplayError", "Status", "replay"]
