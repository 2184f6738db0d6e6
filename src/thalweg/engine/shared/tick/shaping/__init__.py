"""Which shape each join has: measured, weighed, and changed between ticks."""
