"""The live driver of the protocols and of the engine: node process, transport, store.

Imports every package below it except `sim`.
"""
