"""Fragments that balance between partners (COSMOS 6.2): `protocol.Partners` is the protocol.

Pure functions beside it: `ratios` (the objective), `low_pass` (load without noise), `requests` and
`selection` (who asks for how much, and what is given).
"""
