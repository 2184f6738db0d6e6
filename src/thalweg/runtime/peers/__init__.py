"""Nodes as peers: DHTJoin's protocols live, behind the same service and commands."""
