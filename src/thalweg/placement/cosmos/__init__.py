"""COSMOS's query distribution: whole queries to providers of a wide-area network (seed 000, 3.3).

A query is a vertex with interests in substreams. It is mapped to a provider so that queries with
common interests stand near one another and near their sources, and no provider gets more than its
share of the load. Every decision that a coordinator takes is a pure function of what it knows.
"""
