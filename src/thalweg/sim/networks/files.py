"""Topologies in files: JSON, one object.

    {"format": "thalweg-topology", "version": 1, "name": "sand-1",
     "nodes": [[kind, domain, x, y], ...],                    kind: "transit" or "stub"
     "links": [[a, b, latency_us, bandwidth_bps], ...]}       a and b count nodes from 0

Other makers' topologies come in through the same form.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from thalweg.sim.networks.topology import BadTopology, Topology

_FORMAT, _VERSION = "thalweg-topology", 1


def save(topology: Topology, file: Path) -> None:
    rows = zip(
        topology.is_transit.tolist(),
        topology.domain.tolist(),
        topology.position.tolist(),
        strict=True,
    )
    links = zip(
        topology.ends.tolist(),
        topology.latency_us.tolist(),
        topology.bandwidth_bps.tolist(),
        strict=True,
    )
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "name": topology.name,
        "nodes": [["transit" if t else "stub", d, x, y] for t, d, (x, y) in rows],
        "links": [[a, b, latency, bandwidth] for (a, b), latency, bandwidth in links],
    }
    file.write_text(json.dumps(content) + "\n")


def load(file: Path) -> Topology:
    try:
        content = json.loads(file.read_text())
    except json.JSONDecodeError as e:
        raise BadTopology(f"{file}: not JSON: {e}") from e
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise BadTopology(f'{file}: not a topology; it needs "format": "{_FORMAT}"')
    if content.get("version") != _VERSION:
        raise BadTopology(f"{file}: version {content.get('version')} can't be read, 1 can")
    nodes = _rows(file, content, "nodes", (str, int, float, float))
    links = _rows(file, content, "links", (int, int, int, int))
    for i, (kind, *_) in enumerate(nodes):
        if kind not in ("transit", "stub"):
            raise BadTopology(f"{file}: node {i} is a {kind!r}; a node is a transit or a stub")
    try:
        return Topology(
            str(content.get("name", file.stem)),
            np.asarray([n[0] == "transit" for n in nodes], dtype=bool),
            np.asarray([n[1] for n in nodes], dtype=np.int32),
            np.asarray([n[2:] for n in nodes], dtype=np.float64).reshape(-1, 2),
            np.asarray([link[:2] for link in links], dtype=np.int32).reshape(-1, 2),
            np.asarray([link[2] for link in links], dtype=np.int32),
            np.asarray([link[3] for link in links], dtype=np.int64),
        )
    except OverflowError as e:
        raise BadTopology(f"{file}: a number is too large: {e}") from e


def _rows(file: Path, content: dict[str, Any], key: str, kinds: tuple[type, ...]) -> list[Any]:
    rows = content.get(key)
    if not isinstance(rows, list):
        raise BadTopology(f"{file}: {key} must be a list")
    for i, row in enumerate(rows):
        fits = isinstance(row, list) and len(row) == len(kinds)
        if not fits or not all(_fits(v, k) for v, k in zip(row, kinds, strict=True)):
            form = ", ".join(k.__name__ for k in kinds)
            raise BadTopology(f"{file}: {key}[{i}] is {row!r}; it must be [{form}]")
    return rows


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if kind is float else kind)
