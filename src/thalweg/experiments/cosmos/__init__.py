"""What the COSMOS experiments share: the network of 3.4, its coordinators, and yardsticks."""
