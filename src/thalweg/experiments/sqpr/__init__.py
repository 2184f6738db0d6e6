"""What the SQPR experiments share: filling a system query by query, and drawing how it went."""
