"""Typed predicates over the fields of events: `--where`."""
