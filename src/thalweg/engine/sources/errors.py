"""What is wrong with a source, said so that it can be put right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SourceError(ValueError):
    """A source that does not exist or is asked for what it can't do."""

    stream: str | None = None  # whose source it is


def suggestion(name: str, known: Iterable[str]) -> str:
    """The closest known name, and all of them."""
    names = list(known)
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1)
    meant = next((n for n in names if close and n.lower() == close[0]), None)
    did_you_mean = f"; did you mean {meant}?" if meant else ""
    return f"{did_you_mean} (there are {', '.join(names)})" if names else ""
