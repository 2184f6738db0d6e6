"""Benchmarks: systems compared in one run on the same work, run by `thalweg bench NAME`."""

BENCHES = {
    "join": "the auction join: shared and native on the same files",
    "tick": "a tick's latency by the number of new events and of distinct joins",
    "latency": "an event's way to its row: a job a tick, in process, resident tasks",
    "scale": "one and two executors, the driver's part, a tick in many tasks, Kafka",
    "submit": "from submit to the first result, and from an event to its result",
    "register": "100,000 queries from a file: time, memory, and a start after a crash",
    "many-queries": "1 to 100,000 queries: shared, unshared, native and Flink on the same events",
    "many-shapes": "1,000 queries of 400 different joins, 2,000 new events a tick",
    "equality": "100,000 equality filters over one stream, 200,000 new events a tick",
    "intermediates": "three-way joins: A ⋈ B kept always, never, and where it pays",
    "memory": "a tick's peak where sub-queries and joins have no equality",
    "large-state": "a window of 10 GB with memory bounded: ticks, and a start after a crash",
    "network": "a stream, a join and a thousand readers across nodes, beside one node",
    "p2p": "joins among 8 and 16 peers: events/s, messages, delays, beside one node",
    "swap-live": "joins across nodes in an order of choice (COSMOS 5.5, 5.12, 5.14), live",
    "trees": "a stream for 15 readers along a tree, beside unicast; what tolerances save",
    "move": "a window's state moves between live nodes: pre-copy beside stop-copy-start",
    "balancing": "half of a join at one of four slow machines, mended live (D-CAPE, figure 7)",
    "week": "a week in an hour: days and nights, queries and nodes that come and go",
    "sim": "the simulator: bare events, echoes, and membership with Chord on thousands of nodes",
}
