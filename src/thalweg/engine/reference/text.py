"""Functions on VARCHAR. Characters are code points, counted from 1."""

from __future__ import annotations

import re


def like(text: str, pattern: str) -> bool:
    """% is any text, _ any one character, and \\ takes the next character as it is."""
    wildcards = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    regex = "".join(wildcards.get(part, re.escape(part[-1])) for part in parts)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def substring(text: str, start: int, length: int | None = None) -> str | None:
    """The characters at positions start … start + length - 1 that exist; NULL if length < 0."""
    if length is None:
        length = max(len(text) - start + 1, 0)
    if length < 0:
        return None
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def replace(text: str, old: str, new: str) -> str:
    """Every occurrence, left to right, not overlapping; the empty text occurs nowhere."""
    return text.replace(old, new) if old else text


def has_any(words: str, others: str) -> bool:
    """Whether a word stands in both, between commas or an end."""
    return any(word and word == other for word in words.split(",") for other in others.split(","))


def position(part: str, text: str) -> int:
    """Where the part first occurs, 0 if it does not, 1 if it is empty."""
    return text.find(part) + 1
