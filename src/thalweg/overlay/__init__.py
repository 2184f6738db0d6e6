"""Protocols between nodes, as state machines without I/O: step(now, event) -> [effects].

No clock, no global randomness, no sockets; the drivers in `sim` and `runtime` supply all three.
Pure. Imports `plan` and `placement` (coordinators run its pure functions).
"""
