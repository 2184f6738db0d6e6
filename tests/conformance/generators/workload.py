"""A script and what arrives: plain text and data, so a failing one can become a case."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.cql import Script, compile_script
from thalweg.engine.arrivals import Arrival


@dataclass(frozen=True, slots=True)
class Workload:
    text: str
    inputs: dict[str, list[Arrival]]

    def script(self) -> Script:
        return compile_script(self.text)
