"""Hostile requests, drawn from a seed: to every route, with bodies of every kind gone wrong."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow as pa

JSON, NDJSON, TEXT = "application/json", "application/x-ndjson", "text/plain"
ARROW = "application/vnd.apache.arrow.stream"

NAMES = [
    "S",
    "R",
    "q",
    "nobody",
    "",
    "a/b",
    "../x",
    "Größe",
    "x" * 3_000,
    "q\0",
    "%",
    "S?x=1",
    "💣",
]
# Those that the engine and the network give to what they make for themselves.
RESERVED = [
    "pub/x",
    "PUB/x",
    "pub/S>b.1",
    "pub/#0123456789>a.1",
    "due/S",
    "fragment/x",
    "fragment/again/S.1",
    "swap/x",
    "group/x",
    "Group/x",
    "native/x",
    "S@a",
]
SOURCES = ["publication:b", "publication:a", "engine:q", "labels:", "labels:S", "peers:1", "tmp:x"]
NUMBERS = [
    0,
    -1,
    1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**30,
    1.5,
    -0.0,
    1e308,
]
TEXTS = [
    "",
    "a",
    "'",
    '"',
    "\\",
    "\x00",
    "\x1b[31m",
    "NaN",
    "inf",
    "1e400",
    "null",
    "💣" * 9,
    "x" * 5_000,
]
MOMENTS = ["2024-01-01", "0000-01-01", "9999-12-31T23:59:59", "10000-01-01", "2024-02-30", "now"]
PATHS = [
    "out.jsonl",
    "../out.jsonl",
    "/etc/out.jsonl",
    "/dev/full",
    "/dev/null",
    "/proc/self/mem",
    ".",
    "/",
    "a\0b",
    "x" * 5_000,
    "link/../../x",
    "",
]
SCRIPTS = [
    "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts",
    "SELECT a FROM S",
    "SELECT * FROM S [Range 5], R [Range 9] WHERE S.a = R.a",
    "CREATE QUERY q AS SELECT COUNT(*) AS n FROM S [Range 1]",
    "DROP QUERY q",
    "DROP STREAM R",
    "CREATE STREAM F (a INTEGER) TIMESTAMP BY ts FROM '{path}'",
    "SELECT a FROM S WHERE a = {text}",
    "SELECT {number} + a FROM S",
    'CREATE QUERY "{reserved}" AS SELECT a FROM S [Range 3]',
    'CREATE STREAM "{reserved}" (a INTEGER) TIMESTAMP BY ts',
    'CREATE VIEW "{reserved}" AS SELECT a FROM S [Range 3]',
    'CREATE OR REPLACE QUERY "{reserved}" AS SELECT a FROM R',
    'SELECT * FROM "{reserved}" [Range 3]',
    'DROP QUERY "{reserved}"',
    'DROP STREAM "{reserved}"',
    "CREATE STREAM \"{reserved}\" (a INTEGER) TIMESTAMP BY ts FROM '{source}'",
    "CREATE STREAM F (a INTEGER) TIMESTAMP BY ts FROM '{source}'",
]


@dataclass(frozen=True)
class Hostile:
    """A request that somebody may send."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


def draw(rng: random.Random) -> Hostile:
    return rng.choice(_KINDS)(rng)


# --- bodies


def _value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind <= 2:
        return rng.choice(NUMBERS)
    if kind <= 4:
        return rng.choice(TEXTS)
    if kind == 5:
        return rng.choice(MOMENTS)
    if kind == 6:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {rng.choice(["ts", "a", "op", "", "💣"]): _value(rng, depth + 1)}


def _row(rng: random.Random) -> Any:
    if rng.random() < 0.2:
        return _value(rng)
    row = {"ts": rng.choice([*NUMBERS, rng.randrange(1 << 20)]), "a": _value(rng)}
    if rng.random() < 0.5:
        row |= {
            "d": _value(rng),
            "t": _value(rng),
            "x": _value(rng),
            "op": rng.choice(["+", "-", "?"]),
        }
    return row


def _json_rows(rng: random.Random) -> tuple[str, bytes]:
    rows = [_row(rng) for _ in range(rng.randrange(4))]
    if rng.random() < 0.5:
        return JSON, json.dumps(rows).encode()
    return NDJSON, "\n".join(json.dumps(r) for r in rows).encode()


def _arrow_rows(rng: random.Random) -> tuple[str, bytes]:
    columns = {"ts": _column(rng), "a": _column(rng), "d": _column(rng), "t": _column(rng)}
    columns["x"] = _column(rng)
    columns["op"] = rng.choice([pa.array(["+", "-"]), pa.array(["+", "?"]), _column(rng)])
    for name in rng.sample(list(columns), rng.randrange(3)):
        del columns[name]
    if not columns:
        return ARROW, b""
    table = pa.table(columns)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return ARROW, sink.getvalue()


def _column(rng: random.Random) -> pa.Array:
    return rng.choice(_COLUMNS)(rng)


_INTEGERS = [0, 1, -1, 2**31 - 1]
_COLUMNS: list[Callable[[random.Random], pa.Array]] = [
    lambda rng: pa.array([rng.randrange(1 << 20), 5], pa.int64()),
    lambda rng: pa.array([rng.randrange(1 << 20), 5], pa.int64()),
    lambda rng: pa.array(rng.sample(_INTEGERS, 2), pa.int32()).view(pa.date32()),
    lambda rng: pa.array(rng.sample(_INTEGERS, 2), pa.int64()).view(
        pa.timestamp(rng.choice(["s", "ns"]))
    ),
    lambda rng: pa.array([2**63 - 1, -(2**63)]).view(pa.timestamp("s", "UTC")),
    lambda rng: pa.array([2**64 - 1, 0], pa.uint64()),
    lambda rng: pa.array([float("nan"), float("-inf")]),
    lambda rng: pa.array([1.5, None], pa.float16()),
    lambda rng: pa.array(["a", None]).dictionary_encode(),
    lambda rng: pa.RunEndEncodedArray.from_arrays([1, 2], pa.array(["a", "b"])),
    lambda rng: pa.array([b"\xff\xfe", b"a"]).view(pa.string()),
    lambda rng: pa.array([[1], None]),
    lambda rng: pa.array([{"a": 1}, None]),
    lambda rng: pa.array([1, 2], pa.duration("s")),
    lambda rng: pa.array([1, 2], pa.time64("us")),
    lambda rng: pa.nulls(2),
    lambda rng: pa.array([None, None], pa.decimal256(76, 30)),
    lambda rng: pa.array([True, False]),
]


def _noise(rng: random.Random) -> tuple[str, bytes]:
    size = rng.choice([0, 1, 10, 10_000])
    return rng.choice([JSON, NDJSON, TEXT, ARROW, "", "image/png"]), rng.randbytes(size)


def _deep(rng: random.Random) -> tuple[str, bytes]:
    depth = rng.choice([100, 10_000, 200_000])
    opening, closing = rng.choice([(b"[", b"]"), (b'{"a":', b"}")])
    return JSON, opening * depth + b"1" + closing * rng.choice([0, depth])


def _broken(rng: random.Random) -> tuple[str, bytes]:
    """A good body with some bytes cut off, changed or repeated."""
    kind, body = rng.choice([_json_rows, _arrow_rows])(rng)
    changed = bytearray(body)
    for _ in range(rng.randrange(1, 6)):
        if not changed:
            break
        at = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                del changed[at:]
            case 1:
                changed[at] = rng.randrange(256)
            case 2:
                changed[at:at] = changed[at : at + 8]
            case _:
                changed[at : at + 4] = rng.randbytes(4)
    return kind, bytes(changed)


def _body(rng: random.Random) -> tuple[str, bytes]:
    return rng.choice([_json_rows, _json_rows, _arrow_rows, _arrow_rows, _noise, _deep, _broken])(
        rng
    )


# --- requests


def _name(rng: random.Random) -> str:
    known = ["S", "R", "q", *NAMES, rng.choice(RESERVED)]
    return quote(rng.choice(known), safe=rng.choice(["", "/"]))


def _pushed(rng: random.Random) -> Hostile:
    kind, body = _body(rng)
    query = rng.choice(
        ["", "?partition=1", "?partition=-1", "?partition=9999999999", "?batch_id=%00"]
    )
    return Hostile("POST", f"/streams/{_name(rng)}/tuples{query}", {"content-type": kind}, body)


def _promised(rng: random.Random) -> Hostile:
    at = rng.choice([{"at": _value(rng)}, {"at": rng.choice(NUMBERS)}, _value(rng)])
    body = json.dumps(at).encode()
    return Hostile("POST", f"/streams/{_name(rng)}/heartbeat", {"content-type": JSON}, body)


def _submitted(rng: random.Random) -> Hostile:
    text = rng.choice(SCRIPTS).format(
        path=rng.choice(PATHS),
        text=json.dumps(rng.choice(TEXTS)),
        number=rng.choice(NUMBERS),
        reserved=rng.choice(RESERVED),
        source=rng.choice(SOURCES),
    )
    if rng.random() < 0.3:
        cut = rng.randrange(len(text) + 1)
        text = (
            text[:cut]
            + rng.choice(["(", ")" * 50, "(" * 5_000, "'", "--", "\0", "💣", ";;"])
            + text[cut:]
        )
    route = rng.choice(
        ["/queries", "/streams", "/explain", "/explain?form=shared", "/queries/bulk"]
    )
    if rng.random() < 0.5:
        return Hostile("POST", route, {"content-type": TEXT}, text.encode())
    folder = rng.choice([None, *PATHS])
    given: Any = {"cql": text, "name": rng.choice(TEXTS), "folder": folder}
    if route.endswith("bulk"):
        given = {
            "texts": [given, {"cql": "SELECT 1"}, *([_value(rng)] if rng.random() < 0.3 else [])]
        }
    return Hostile("POST", route, {"content-type": JSON}, json.dumps(given).encode())


def _noisy_script(rng: random.Random) -> Hostile:
    kind, body = _noise(rng)
    return Hostile("POST", rng.choice(["/queries", "/explain"]), {"content-type": kind}, body)


def _attached(rng: random.Random) -> Hostile:
    form = rng.choice(["jsonl:", "csv:", "parquet:", "kafka:", "nope:", "terminal:", ""])
    body: Any = {"target": form + rng.choice(PATHS)}
    if rng.random() < 0.5:
        body["folder"] = rng.choice(PATHS)
    if rng.random() < 0.1:
        body = _value(rng)
    url = f"/queries/{_name(rng)}/sinks"
    return Hostile("POST", url, {"content-type": JSON}, json.dumps(body).encode())


def _read(rng: random.Random) -> Hostile:
    after = rng.choice(
        ["", "1.5.0", "0.99999999999999999999999", "9" * 5_000, "-1", "1.end.0", "💣"]
    )
    url = rng.choice(
        [
            f"/queries/{_name(rng)}/results?format={rng.choice(['json', 'ndjson', 'xml'])}"
            f"&after={quote(after)}&limit={rng.choice(NUMBERS)}",
            f"/queries/{_name(rng)}/explain?form={rng.choice(['logical', 'shared', 'no'])}",
            f"/queries/{_name(rng)}/why/{_name(rng)}",
            f"/queries/{_name(rng)}",
            f"/streams/{_name(rng)}",
            f"/streams/{_name(rng)}/rejects?limit={rng.choice([0, 5, 99_999_999])}",
            f"/groups/{_name(rng)}",
            "/health",
            "/metrics",
            "/queries",
            "/streams",
            "/openapi.json",
            f"/{_name(rng)}",
        ]
    )
    return Hostile(rng.choice(["GET", "GET", "GET", "PUT", "HEAD"]), url, {}, b"")


def _dropped(rng: random.Random) -> Hostile:
    kind = rng.choice(["queries", "streams", "queries/q/sinks"])
    return Hostile("DELETE", f"/{kind}/{_name(rng)}", {}, b"")


_KINDS = [_pushed, _pushed, _pushed, _pushed, _promised, _submitted, _submitted, _noisy_script]
_KINDS += [_attached, _read, _read, _dropped]


# --- at a node of a network

NODES = ["a", "b", "nobody", "", "A", "a,b", "b,b", "a/0", "b/9999999999999", "💣", "x" * 3_000]
_PLAIN = [x for x in NODES if x.isascii() and "\0" not in x]  # what a header can hold
_HEADERS: dict[str, list[str]] = {
    "thalweg-strategy": ["local", "home", "sqpr", "sand", "cosmos", "nope", ""],
    "thalweg-spread": ["2", "0", "-1", "99999999999999999999", "2/0", "b/4", "1.5", *_PLAIN],
    "thalweg-plan": ["swap", "nope", ""],
    "thalweg-routing": ["lottery", "nope", ""],
    "thalweg-bound-ms": ["1", "0", "-1", "nan", "inf", "1e400", "x"],
    "thalweg-movable": ["1", "0", "x"],
    "thalweg-eager": ["1", "x"],
    "thalweg-here": ["1", ""],
    "thalweg-at": _PLAIN,
}


def draw_networked(rng: random.Random) -> Hostile:
    """As users and other nodes may ask a node."""
    drawn = draw(rng) if rng.random() < 0.5 else rng.choice(_NETWORKED)(rng)
    headers = {n: rng.choice(v) for n, v in _HEADERS.items() if rng.random() < 0.1}
    return Hostile(drawn.method, drawn.url, drawn.headers | headers, drawn.body)


def _asked_of_node(rng: random.Random) -> Hostile:
    url = rng.choice(
        [
            f"/network/defined?name={_name(rng)}",
            "/network/defined",
            f"/network/placed?name={_name(rng)}",
            f"/network/joins?id={_name(rng)}",
            f"/network/trees?why={quote(rng.choice(NODES))}",
            f"/network/fidelity?period_s={rng.choice(NUMBERS)}&periods={rng.choice(NUMBERS)}",
            f"/queries/{_name(rng)}/placed?format={rng.choice(['json', 'text', 'xml'])}",
            f"/network/{_name(rng)}",
            *(f"/network/{what}" for what in _TOLD),
            "/network",
        ]
    )
    return Hostile("GET", url, {}, b"")


_TOLD = [
    "links",
    "nodes",
    "role",
    "measured",
    "fragments",
    "refusals",
    "room",
    "load",
    "loads",
    "partners",
    "moves",
    "successions",
    "check",
    "coordinators",
    "replan",
    "replans",
    "publications",
]


def _moved(rng: random.Random) -> Hostile:
    kind, body = rng.choice([_given, _given, _given, _noise, _deep])(rng)
    what = rng.choice(["moves", "moves", "replan", "plan", "drain"])
    return Hostile("POST", f"/network/{what}", {"content-type": kind}, body)


def _given(rng: random.Random) -> tuple[str, bytes]:
    told: Any = {
        "what": rng.choice([*NAMES, *RESERVED]),
        "publication": rng.choice(RESERVED),
        "to": rng.choice(NODES),
        "buckets": rng.choice(["0-31", "0-", "-", "9999999999999999999", "5-2", "", "x"]),
        "by": rng.choice(["precopy", "ptlb", "mslb", "stop", "replay", "nope", ""]),
        "cql": rng.choice(SCRIPTS),
        "node": rng.choice(["nobody", ""]),
    }
    for name in list(told):
        if rng.random() < 0.3:
            del told[name]
        elif rng.random() < 0.1:
            told[name] = _value(rng)
    if rng.random() < 0.1:
        told = _value(rng)
    return JSON, json.dumps(told).encode()


def _forgotten(rng: random.Random) -> Hostile:
    body: Any = rng.choice([{"node": "nobody"}, {"node": ""}, {"node": _value(rng)}, _value(rng)])
    return Hostile("POST", "/network/forget", {"content-type": JSON}, json.dumps(body).encode())


_NETWORKED = [_asked_of_node, _asked_of_node, _moved, _moved, _forgotten]
