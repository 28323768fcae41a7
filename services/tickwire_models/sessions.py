"""Which recordings a command works on: the captures and symbols of a host's configuration file."""

from __future__ import annotations

from pathlib import Path

from tickwire.errors import FeedError
from tickwire.runtime import config
from tickwire_ingest.config import IngestConfig
from tickwire_models.dataset import Rows, Session, read_session


def rows_of_config(path: Path, window_rows: int) -> list[Rows]:
    """Return the rows of every symbol that has any, through the live parser and the live feature kernels.

    Raises:
        ConfigError: The file is not a host's configuration.
        FeedError: A capture is missing, or none of the symbols has rows.
    """
    run, ingest = config.load(path, "ingest", IngestConfig)
    found = []
    for instrument in run.symbols:
        captures = tuple(capture for capture in ingest.captures if capture.format == instrument.venue)
        try:
            found.append(read_session(Session(instrument, captures), run.folder, window_rows))
        except FeedError as error:
            if "gave none" not in str(error):
                raise
    if not found:
        raise FeedError(f"captures of {path}: must give rows of at least one symbol, gave none")
    return found
