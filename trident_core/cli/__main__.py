"""`python -m trident_core.cli`: the same as the `trident` script."""

from trident_core.cli.entry import main

main()
