"""The JSON form, field by field; `docs/placement.md` describes it to people."""

from __future__ import annotations

import msgspec


class _Text(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    pass


class HostText(_Text):
    name: str
    cpu: float | None = None  # None: as much as one likes
    out_bps: float | None = None
    in_bps: float | None = None


class LinkText(_Text, rename={"source": "from", "target": "to"}):
    source: str
    target: str
    bps: float


class StreamText(_Text):
    name: str
    rate_bps: float
    home: str | None = None


class OperatorText(_Text):
    name: str
    inputs: list[str]
    output: str
    cpu: float = 0.0
    state_bytes: float = 0.0
    pinned: str | None = None


class QueryText(_Text):
    name: str
    wants: str
    proxy: str | None = None
    latency_bound_ms: float | None = None


class CostText(_Text):
    admitted: int
    network_bps: float
    cpu: float
    busiest: float


class DeploymentText(_Text):
    runs: list[tuple[str, str]] = []
    sends: list[tuple[str, str, str]] = []
    serves: dict[str, str] = {}
    wants: list[tuple[str, str]] | None = None
    cost: CostText | None = None  # told, never read: it follows from the rest


class ProblemText(_Text):
    hosts: list[HostText]
    streams: list[StreamText]
    operators: list[OperatorText] = []
    queries: list[QueryText] = []
    link_bps: float | None = None  # of every link that `links` does not list
    links: list[LinkText] = []
    latency_ms: list[list[float | None]] | None = None  # null: no way leads there
    running: DeploymentText | None = None
