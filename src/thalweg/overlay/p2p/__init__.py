"""Joins between peers (DHTJoin, seed 003, chapters 3 and 4): queries go to everybody, tuples to the
owner of their join value, results to who asked. docs/peers.md tells the story; `index` is the
protocol of sources and owners, `streams` the majority registers of sources, `results` the askers.
"""
