"""Prefix routing, as in Tapestry and Pastry: `protocol.Prefix`; `table` is what a node knows."""
