"""Streams of other nodes at this one: which rows come, from whom, since when."""
