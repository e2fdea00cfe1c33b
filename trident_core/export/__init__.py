"""Tables into files: Parquet, Arrow IPC and CSV, whole or by symbol. Needs pyarrow, the extra `arrow`."""

from __future__ import annotations

from trident_core.errors import PluginError


def need_pyarrow() -> None:
    """Raise PluginError, with what to install, if pyarrow cannot be imported."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise PluginError(
            f"tables are written with pyarrow, which cannot be imported: {error}",
            hint="pip install 'trident-core[arrow]'",
        ) from error
