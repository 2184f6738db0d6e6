"""What changes while queries run: pure policies and migration protocols.

Same rules as `overlay`: no clock, no global randomness, no sockets.
Pure. Imports `plan`, `placement` and `overlay`.
"""
