"""The live view in the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.coordinate import Coordinate
from textual.widgets import DataTable, Footer, Header

from tickwire_ctl.top import rows
from tickwire_ctl.top.look import Looker

_TABLES: dict[str, tuple[tuple[str, ...], Callable[[Looker], list[rows.Row]]]] = {
    "services": (rows.SERVICES, rows.service_rows),
    "rings": (rows.RINGS, rows.ring_rows),
    "stages": (rows.STAGE, rows.stage_rows),
    "inference": (rows.INFERENCE, rows.inference_rows),
    "symbols": (rows.SYMBOLS, rows.symbol_rows),
}


class TopApp(App[None]):
    """Five tables, refreshed a few times a second."""

    CSS = """
    DataTable { height: auto; border: round $primary; }
    #symbols { height: 1fr; }
    #left { width: 3fr; height: auto; }
    #inference { width: 2fr; }
    #middle { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [("q", "quit", "Quit"), ("p", "pause", "Pause or go on")]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, prefix: str, interval_s: float) -> None:
        """Show a prefix, looked at every `interval_s`."""
        super().__init__()
        self.title = f"tickwire {prefix}"
        self._looker = Looker(prefix)
        self._interval_s = interval_s
        self._paused = False

    def compose(self) -> ComposeResult:
        """Lay the tables out."""
        yield Header(show_clock=True)
        yield self._table("services")
        yield self._table("rings")
        with Horizontal(id="middle"):
            with Vertical(id="left"):
                yield self._table("stages")
            yield self._table("inference")
        yield self._table("symbols")
        yield Footer()

    def on_mount(self) -> None:
        """Give the tables their columns and begin to look."""
        for name, (columns, _) in _TABLES.items():
            self.query_one(f"#{name}", DataTable).add_columns(*columns)
        self.look()
        self.set_interval(self._interval_s, self.look)

    def on_unmount(self) -> None:
        """Let go of the shared memory."""
        self._looker.close()

    def look(self) -> None:
        """Look once and show it."""
        if self._paused:
            return
        self._looker.refresh()
        for name, (_, rows_of) in _TABLES.items():
            _fill(self.query_one(f"#{name}", DataTable), rows_of(self._looker))

    def action_pause(self) -> None:
        """Hold the picture, or go on."""
        self._paused = not self._paused
        self.sub_title = "paused" if self._paused else ""

    def _table(self, name: str) -> DataTable[str]:
        table: DataTable[str] = DataTable(id=name, cursor_type="none", zebra_stripes=True)
        table.border_title = name
        return table


# Cell by cell, so that the place that was scrolled to stays.
def _fill(table: DataTable[str], found: list[rows.Row]) -> None:
    if table.row_count != len(found):
        table.clear()
        table.add_rows(found)
        return
    for row, values in enumerate(found):
        for column, value in enumerate(values):
            place = Coordinate(row, column)
            if table.get_cell_at(place) != value:
                table.update_cell_at(place, value, update_width=True)
