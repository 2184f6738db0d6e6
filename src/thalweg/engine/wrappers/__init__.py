"""Engines that may run a node's queries, each behind the one interface of `interface.py`."""
