"""Chord (Stoica et al., 2001), by the corrected rules of Zave (*How to make Chord correct*, 2017).

`protocol` keeps the ring and answers; `table` is what a node knows of it; `lookup` is one search,
`searching` all of a node's. `messages` has what is said, asked and delivered.
"""
