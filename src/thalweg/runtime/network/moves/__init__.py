"""Fragments that change place with their state, and who decides that they do."""
