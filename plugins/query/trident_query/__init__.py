"""Query engines: one dialect of regular expressions over fields of bytes (docs/dialect.md)."""
