"""What this package adds to Trident."""

from trident_core.contracts import EngineSpec, Kind
from trident_core.hookspecs import hookimpl


@hookimpl
def trident_register_stores():
    return [
        EngineSpec(
            kind=Kind.STORE,
            name="arrow",
            factory="trident_store_arrow.store:ArrowStore",
            summary="Arrow IPC files that other languages read as they lie on the disk",
            requires=("pyarrow",),
            install_hint="pip install pyarrow",
            files=("manifest.json", "*.arrow"),
        )
    ]
