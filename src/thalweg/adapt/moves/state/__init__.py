"""The join of a bucket range: shapes, tables, and state matched from one shape to another."""
