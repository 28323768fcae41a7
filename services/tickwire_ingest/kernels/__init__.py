"""Compiled parts of ingest: decimal text, level lists, checksums, ticks of one venue event."""
