"""The order of a join across sites, chosen batch by batch (SwAP, COSMOS chapter 5)."""
