"""The conformance suite: one command says whether an engine keeps its contract. See docs/conformance.md."""
