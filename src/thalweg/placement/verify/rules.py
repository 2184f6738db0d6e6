"""The rules that a deployment can break."""

from __future__ import annotations

import enum
from dataclasses import dataclass

ROUNDING = 1e-9  # of a capacity: sums of floats differ in their last digits


class Rule(enum.StrEnum):
    REFERENCE = "reference"  # a number stands for nothing in the problem
    SELF_SEND = "self-send"
    PIN = "pin"
    PROVIDER = "provider"  # C3
    AVAILABILITY = "availability"  # C2, III.5
    CAUSALITY = "causality"  # C4, III.7
    DEMAND = "demand"  # C1, III.4
    PROXY = "proxy"
    CPU = "cpu"  # III.6d
    BANDWIDTH_OUT = "bandwidth out"  # III.6c
    BANDWIDTH_IN = "bandwidth in"  # III.6b
    LINK = "link"  # III.6a
    LATENCY = "latency"
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class Violation:
    rule: Rule
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"
