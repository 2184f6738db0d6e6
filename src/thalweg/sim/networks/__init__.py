"""Networks for the simulator and for placement: made, measured, kept in files, and drawn.

`transit_stub.generate` makes a topology, `latencies.between` measures it, `scatter.place` finds
places for sources and proxies, `hosts.Hosts` lets the simulator send messages across it, with or
without the queues of `queueing`. `files` and `draw` keep and show it.
"""
