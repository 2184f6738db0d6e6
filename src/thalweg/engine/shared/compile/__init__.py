"""From a logical plan to physical operators, and from all of them to one plan."""
