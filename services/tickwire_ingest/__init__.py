"""Ingest: from venues and captures to ticks."""
