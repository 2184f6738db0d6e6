"""Alerts: `protocol.Alerts`; `messages` has what is said, asked and delivered."""
