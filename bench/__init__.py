"""Benchmarks: systems compared in one run on the same work, run by `thalweg bench NAME`."""

BENCHES = {
    "join": "the auction join: shared and native on the same files",
    "tick": "a tick's latency by the number of new events and of distinct joins",
    "submit": "from submit to the first result, and from an event to its result",
    "sim": "the simulator: bare events, echoes, and membership with Chord on thousands of nodes",
}
