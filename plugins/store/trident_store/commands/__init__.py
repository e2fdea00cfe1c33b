"""Commands of `trident` that work on stores. Thin: what they do is in `trident_store.tools`."""
