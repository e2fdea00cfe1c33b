"""Tools for stores of the portable format: verify, repair, salvage and what else works on the files."""
