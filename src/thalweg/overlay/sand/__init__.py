"""SAND's distributed placement (seed 001, section 4): `protocol.Sand`.

`query` is what is asked for, `zones` cuts its tree, `planning` places one zone from what messages
carry. Three roles of every node are states of their own: `proxying` for those who ask,
`coordinating` for zones, `hosting` for sources, operators and measurements; `mail` finds
coordinators through the overlay.
"""
