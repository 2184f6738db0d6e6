"""Tells waiting requests that there has been a tick: from the site's threads to the event loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from thalweg.engine.site import Site


class TickSignal:
    """Lives in one event loop; any number of requests can wait at no cost of a thread."""

    def __init__(self, site: Site) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()
        self.closing = False
        self._stop = site.listen(self._from_site)

    def _from_site(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        self._rung.set()
        self._rung = asyncio.Event()

    @property
    def next(self) -> asyncio.Event:
        """Take it before looking for rows: then no tick in between is missed."""
        return self._rung

    def close(self) -> None:
        """Let all who wait come to their end."""
        self.closing = True
        self._stop()
        self._ring()


async def rung(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait for it; whether it came in time."""
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except TimeoutError:
        return False
    return True
