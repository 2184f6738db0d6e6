"""What is wrong with certificates and users."""

from __future__ import annotations


class TrustError(Exception):
    """What is wrong with a file of keys, certificates or users, and what to do."""


class Denied(Exception):
    """Why somebody may not do something.

    `is_known` tells who is unknown (HTTP 401) from who is known and may not (403).
    """

    def __init__(self, why: str, *, is_known: bool) -> None:
        super().__init__(why)
        self.is_known = is_known
