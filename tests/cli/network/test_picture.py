"""The network as SVG and text, from what the service tells."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from thalweg.cli.network.drawing import map_text
from thalweg.cli.network.picture import map_svg
from thalweg.runtime.network.mirrors.lags import lag_text, with_lags

SVG = "{http://www.w3.org/2000/svg}"


def node(name: str, site: str, *links: dict[str, Any], **more: Any) -> dict[str, Any]:
    given = {"name": name, "site": site, "http": f"http://{name}", **more}
    return {"answers": True, "defines": [], "links": list(links), **given}


def link(stream: str, home: str, **more: Any) -> dict[str, Any]:
    given = {"stream": stream, "from": home, "arrived": 1234, "watermark": "90", "error": None}
    return {**given, **more}


def network() -> dict[str, Any]:
    bids = {"name": "Bids <&>", "kind": "stream"}
    queries = [{"name": f"q{i}", "kind": "query"} for i in range(9)]
    return {
        "nodes": [
            node("n1", "paris", defines=[bids]),
            node("n2", "paris", link("Bids <&>", "n1")),
            node("n3", "rome", link("Bids <&>", "n1"), defines=queries),
            node("n4", "oslo", link("Bids <&>", "n3", error="n3 can't be reached"), answers=False),
        ]
    }


def test_all_that_there_is_is_drawn() -> None:
    found = network()
    with_lags(found["nodes"], {"bids <&>": "100"})
    root = ElementTree.fromstring(map_svg(found))
    texts = [t.text or "" for t in root.iter(f"{SVG}text")]
    assert {"site oslo", "site paris", "site rome"} <= set(texts)
    assert {"n1", "n2", "n3", "n4 (does not answer)", "≋ Bids <&>"} <= set(texts)
    assert any(t.startswith("ƒ q0, q1") for t in texts)
    assert texts.count("Bids <&>: 1,234 rows, 10 instants behind") == 3
    arrows = [p for p in root.iter(f"{SVG}path") if p.get("marker-end")]
    assert len(arrows) == 3
    told = [t.text or "" for arrow in arrows for t in arrow]
    assert any("n3 can't be reached" in t for t in told)


def test_arrows_end_at_the_node_that_reads() -> None:
    found = network()
    root = ElementTree.fromstring(map_svg(found))
    boxes = {
        (rect[0].text or "").removeprefix("http://"): rect
        for rect in root.iter(f"{SVG}rect")
        if len(rect)
    }
    arrows = [p for p in root.iter(f"{SVG}path") if p.get("marker-end")]
    for arrow, reader in zip(arrows, ("n2", "n3", "n4"), strict=True):
        x, y = (float(v) for v in (arrow.get("d") or "").split()[-1].split(","))
        box = {k: float(boxes[reader].get(k, "0")) for k in ("x", "y", "width", "height")}
        assert box["y"] < y < box["y"] + box["height"]
        assert min(abs(x - box["x"]), abs(x - box["x"] - box["width"])) <= 2


def test_the_text_says_the_lag() -> None:
    found = network()
    with_lags(found["nodes"], {"bids <&>": "100"})
    assert "⇠ Bids <&> from n1: 1,234 rows up to 90, 10 instants behind" in map_text(found)


@pytest.mark.parametrize(
    ("here", "home", "told"),
    [
        ("90", "100", "10 instants behind"),
        ("100", "100", "up to date"),
        ("101", "100", "up to date"),
        (None, "100", "nothing yet"),
        ("90", None, None),
        ("2026-01-01T10:00:00", "2026-01-01T10:00:02.500", "2.5 s behind"),
        ("2026-01-01T10:00:00", "the end", None),
    ],
)
def test_lags(here: str | None, home: str | None, told: str | None) -> None:
    assert lag_text(here, home) == told
