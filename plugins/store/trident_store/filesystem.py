"""Every call a store makes to the file system goes through one object: `trident_core.filesystem` has it, for
the line's own files and its fault injection need it too."""

from __future__ import annotations

from trident_core.filesystem import Buffer, FileSystem, OpenFile, OsFileSystem, read, write_all

__all__ = ["Buffer", "FileSystem", "OpenFile", "OsFileSystem", "read", "write_all"]
