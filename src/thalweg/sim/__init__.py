"""The simulated driver of the protocols: kernel, networks, faults, workloads.

Deterministic: one seed, one trace. Imports `overlay`, `adapt` and `placement`.
"""
