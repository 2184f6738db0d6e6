"""What nodes may be called: names stand in paths, headers and the names of publications."""

from __future__ import annotations

import re

from thalweg.cli.exits import BAD_INPUT, CommandFailed

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def check_node_name(name: str) -> None:
    """Raises CommandFailed."""
    if not _NAME.fullmatch(name):
        raise CommandFailed(
            f"{name!r} is not a node's name: use up to 64 letters, digits, _, . and -, "
            "and begin with a letter or a digit",
            BAD_INPUT,
        )
