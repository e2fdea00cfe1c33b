"""One module of tests for each kind of engine, and one for the whole line."""
