"""Stores: durable, append-only logs of events."""
