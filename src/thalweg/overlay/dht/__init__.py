"""Put and get on a Chord ring: each key at its owner and at the nodes after it.

`protocol` answers and keeps copies where they belong; `operation` is one put or get under way.
"""
