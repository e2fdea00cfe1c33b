"""Order books on sortedcontainers, for Trident."""
