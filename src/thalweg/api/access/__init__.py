"""Users of a service: who asks, what they may do, and how much."""

from thalweg.api.access.access import Access

__all__ = ["Access"]
