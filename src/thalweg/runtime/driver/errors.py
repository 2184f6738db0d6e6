"""What can go wrong between a driver and those who use it."""

from __future__ import annotations


class DriverError(Exception):
    """A request that this driver can't carry out."""


class DriverClosed(DriverError):
    """The driver was closed, or has left, before this was done."""
