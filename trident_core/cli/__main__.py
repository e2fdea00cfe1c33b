"""`python -m trident_core.cli`: the same as the `trident` script."""

from trident_core.cli.main import main

main()
