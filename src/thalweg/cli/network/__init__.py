"""thalweg network: many nodes on this machine, and what they know of each other."""

from thalweg.cli.network.command import network

__all__ = ["network"]
