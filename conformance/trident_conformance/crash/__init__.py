"""The crash laboratory: power cuts, kills and failing disks, for any store (docs/crash-lab.md)."""
