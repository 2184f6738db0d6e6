"""The site of COSMOS 6.3: nodes as queues, tuples as jobs, fragments moved by the real protocol."""
