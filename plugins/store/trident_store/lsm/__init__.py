"""The engine `lsm`: the portable log, and behind it sorted, indexed tables that take the log's place."""
