"""What the roles of a partitioned query say to each other."""
