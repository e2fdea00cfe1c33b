"""Row patterns: what happened to an order, a symbol, a firm, in which order, how fast (docs/sequences.md)."""
