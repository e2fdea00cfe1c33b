"""Stores on other people's engines: blocks of events as values of a key-value store or database."""
