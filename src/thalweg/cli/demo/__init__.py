"""thalweg demo: an auction house, a few dozen standing queries, live in the terminal."""

from thalweg.cli.demo.command import demo

__all__ = ["demo"]
