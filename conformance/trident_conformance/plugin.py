"""pytest plugin of the conformance suite: `-p trident_conformance.plugin`."""
