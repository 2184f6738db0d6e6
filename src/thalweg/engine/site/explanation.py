"""An explanation: the same for people as text and for programs as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True)
class Explanation:
    text: str
    data: Any

    def json(self) -> bytes:
        return msgspec.json.encode(self.data)
