"""Dissemination trees that re-hang themselves: `protocol.Trees`; start reading there."""
