"""Joins between peers, played on a ring: what the DHTJoin experiments share."""
