"""Matching engines: the capability `match` of the books. Rules: docs/matching.md."""
