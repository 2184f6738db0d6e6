"""Parts of queries that another node computes: what is asked of others, and computed for them."""
