"""What a site refuses, and why; each is one sentence that can be shown as it is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_NAME = 100  # characters of a name that a message quotes


class SiteError(Exception):
    """Something that a site can't do."""


class Unknown(SiteError):
    """A name that the catalog does not have."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        by_key = {k.lower(): k for k in known}
        close = difflib.get_close_matches(name.lower(), by_key, n=1)
        hint = f"; did you mean {by_key[close[0]]}?" if close else ""
        if kind == "node" and by_key:  # there are few
            hint = f": there are {', '.join(sorted(by_key.values()))}"
        shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
        super().__init__(f"there is no {kind} {shown}{hint}")


class WrongUse(SiteError):
    """A call that makes no sense for what it names."""


class NotAtOnce(SiteError):
    """Of statements that were to be executed together: each has to go by itself."""


class Busy(SiteError):
    """The engine is behind and can't take more for now."""

    def __init__(self, backlog: int, retry_after_s: float) -> None:
        super().__init__(
            f"{backlog} tuples wait for the engine: "
            f"send the batch again, with the same batch_id, in {retry_after_s:g} s"
        )
        self.retry_after_s = retry_after_s


class Forgotten(SiteError):
    """Results that were asked for and are no longer kept."""
