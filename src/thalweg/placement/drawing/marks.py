"""What drawings are made of: pieces of SVG, and the page around them."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot
from xml.sax.saxutils import escape

Point = tuple[float, float]

_STYLE = (
    "text{font:12px sans-serif;fill:#222;text-anchor:middle}.small{font-size:10px;fill:#556}"
    "rect,circle{fill:#f4f6f8;stroke:#667}.run{fill:#dce9f7;stroke:#36a}.relay{fill:#fdf1d8;stroke:#b80}"
    ".home{fill:#e3f2e1;stroke:#383}.bar{fill:#36a;stroke:none}.full{fill:#c33;stroke:none}"
    "path{stroke:#99a;fill:none}"
)


def text(at: Point, told: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{at[0]:.1f}" y="{at[1]:.1f}">{escape(told)}</text>'


def shortened(text: str, length: int = 24) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def document(width: float, height: float, parts: Sequence[str]) -> str:
    tip = (
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
        ' markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L8,4 L0,8 z"'
        ' style="fill:#667;stroke:none"/></marker>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}">'
        f"<style>{_STYLE}</style><defs>{tip}</defs>{''.join(parts)}</svg>\n"
    )


def mark(at: Point, kind: str, size: float, title: str, *, square: bool = False) -> str:
    """A disc or a square, as wide as twice its size, that tells its title."""
    x, y = at
    told = f"<title>{escape(title)}</title>"
    if square:
        return (
            f'<rect class="{kind}" x="{x - size:.1f}" y="{y - size:.1f}" width="{2 * size:.1f}"'
            f' height="{2 * size:.1f}">{told}</rect>'
        )
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}">{told}</circle>'


def arrow(start: Point, stop: Point, width: float, title: str, *, short_of: float = 0.0) -> str:
    """Ends a little before its goal, where the mark there begins."""
    along = (stop[0] - start[0], stop[1] - start[1])
    length = hypot(*along) or 1.0
    end = [stop[i] - short_of * along[i] / length for i in (0, 1)]
    return (
        f'<path d="M{start[0]:.1f},{start[1]:.1f} L{end[0]:.1f},{end[1]:.1f}"'
        f' stroke-width="{width:.1f}" opacity="0.7" marker-end="url(#tip)">'
        f"<title>{escape(title)}</title></path>"
    )
