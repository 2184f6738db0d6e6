"""Queries spread over the coordinator tree: `protocol.QueryDistribution`; start reading there."""
