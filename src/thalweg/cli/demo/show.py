"""Shows the demo while it runs: a live screen on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.live import Live

from thalweg.cli.demo.pulse import Picture, Pulse
from thalweg.cli.demo.screen import Screen

_REFRESH_S = 0.25
_LINE_S = 5.0

Over = Callable[[], bool]


def show_live(pulse: Pulse, screen: Screen, console: Console, over: Over) -> Picture:
    """Fills the terminal until it is over; gives the last picture."""
    picture = pulse.picture()
    with Live(console=console, screen=True, auto_refresh=False, transient=True) as live:
        while not over():
            picture = pulse.picture()
            size = console.size
            live.update(screen.render(picture, size.width, size.height), refresh=True)
            time.sleep(_REFRESH_S)
    return picture


def show_lines(pulse: Pulse, console: Console, over: Over) -> Picture:
    """A line every few seconds."""
    picture, said = pulse.picture(), 0.0
    while not over():
        time.sleep(_REFRESH_S)
        picture = pulse.picture()
        if picture.elapsed_s - said >= _LINE_S:
            said = picture.elapsed_s
            console.print(_line(picture), soft_wrap=True, highlight=False)
    return picture


def _line(picture: Picture) -> str:
    rate = picture.events_per_s[-1] if picture.events_per_s else 0
    return (
        f"{picture.elapsed_s:4.0f} s  {picture.events:,} events ({rate:,.0f}/s)  "
        f"{picture.rows:,} rows  tick {picture.tick}, median {picture.median_tick_s:.2f} s"
        + (f"  failing: {picture.error}" if picture.error else "")
    )


def save_svg(picture: Picture, screen: Screen, path: Path, width: int = 118) -> None:
    """One picture of the screen, as it would fill a terminal that has room for all queries."""
    height = len(picture.queries) // 2 + 17
    console = Console(
        record=True, width=width, height=height, file=io.StringIO(), force_terminal=True
    )
    console.print(screen.render(picture, width, height), height=height)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_without_fetched_fonts(console.export_svg(title="make demo")))


def _without_fetched_fonts(svg: str) -> str:
    """rich would have the reader fetch a font; any monospaced one will do."""
    fonts = "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace"
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.S).replace("Fira Code, monospace", fonts)
