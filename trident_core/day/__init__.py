"""A day of market data from Python: `trident.open`. See docs/python.md."""

from trident_core.day.day import Day, open_day
from trident_core.day.question import LazyTable
from trident_core.day.snapshot import BookSnapshot

__all__ = ["BookSnapshot", "Day", "LazyTable", "open_day"]
