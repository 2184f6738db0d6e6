"""Which files a service may read and write.

Whoever can reach a service can name files in CQL and in sinks. So these stay within folders that
its operator allows, wherever `..` and links lead; devices, pipes and sockets are no files.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path


class PathRefused(ValueError):
    """A path that may not be used, and what to do about it."""


@dataclass(frozen=True, slots=True)
class AllowedFolders:
    """None: any. That is for a process of the user's own."""

    folders: tuple[Path, ...] | None = None

    def checked(self, path: Path) -> Path:
        """The path without links; raises PathRefused."""
        try:
            real = path.resolve()
            kind = real.stat().st_mode if real.exists() else None
        except (OSError, ValueError, RuntimeError) as error:  # too long, a NUL, links in a circle
            raise PathRefused(f"{_shown(path)} can't be used: {_reason(error)}") from None
        if kind is not None and not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            raise PathRefused(f"{_shown(path)} is neither a file nor a folder")
        if self.folders is not None and not any(
            real.is_relative_to(folder.resolve()) for folder in self.folders
        ):
            allowed = ", ".join(str(f.resolve()) for f in self.folders)
            raise PathRefused(
                f"{_shown(real)} is outside of the folders that this service may use ({allowed}): "
                f"put it there, or start the service with --allow {_shown(real.parent)}"
            )
        return real


ANYWHERE = AllowedFolders()
_LONGEST = 200


def _shown(path: Path) -> str:
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(path)[:_LONGEST])
    return text if len(str(path)) <= _LONGEST else f"{text}…"


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    return str(error)
