"""The kill switch: the file and the watch that hands it to the loop."""

from __future__ import annotations

import threading

import pytest

from tickwire.errors import ConfigError
from tickwire.records import Instrument, SymbolTable
from tickwire.runtime import private_stats
from tickwire_router.config import Rule
from tickwire_router.kernels.desk import new_desk
from tickwire_router.kernels.withdrawal import kill_changed
from tickwire_router.kill_switch import KillState, kill, kill_path, read_kill, unkill
from tickwire_router.kill_watch import UNREADABLE_GENERATION, KillWatch
from tickwire_router.stats import ROUTER_STATS

TABLE = SymbolTable(
    Instrument(venue="v", name=name, price_increment="1", quantity_increment="1") for name in ("A", "B", "C")
)


class Log:
    """Keeps what was logged."""

    def __init__(self):
        self.events = []

    def info(self, event, **values):
        self.events.append((event, values))

    warning = error = info


class Watched:
    """A watch with its desk, on a state directory."""

    def __init__(self, folder):
        self.log = Log()
        self.desk = new_desk([Rule(1.0, 1.0, 1, 0)] * 3, 1, 1, False, private_stats(ROUTER_STATS, 3))
        self.watch = KillWatch(folder, TABLE, self.desk, self.log)

    def look(self):
        """What the loop is told, None when there is nothing new."""
        self.watch.look()
        if not kill_changed(self.desk):
            return None
        return self.desk.killed.tolist(), int(self.desk.kill_generation[0])


def test_kill_no_file_kills_nothing(tmp_path):
    """Without a file nothing is killed, and the loop is told so once."""
    watched = Watched(tmp_path)
    assert watched.look() == ([0, 0, 0, 0], 0)
    assert watched.look() is None


def test_kill_symbols_and_everything_persist_until_lifted(tmp_path):
    """Symbols' kills and the global one are independent; each change reaches the loop with its own generation."""
    folder = tmp_path / "state"
    watched = Watched(folder)
    watched.look()
    first = kill(folder, ["v:B"], who="ann", why="fat finger")
    assert first == read_kill(folder)
    assert (first.symbols, first.everything, first.who, first.why) == (
        {"v:B": "fat finger"},
        False,
        "ann",
        "fat finger",
    )
    assert watched.look() == ([0, 1, 0, 0], first.generation)
    second = kill(folder, None, who="bob", why="venue down")
    assert watched.look() == ([0, 1, 0, 1], second.generation)
    assert Watched(folder).look() == ([0, 1, 0, 1], second.generation), "a restarted router is killed from the start"
    third = unkill(folder, None, who="bob", why="venue up")
    assert watched.look() == ([0, 1, 0, 0], third.generation)
    fourth = unkill(folder, ["v:B"], who="ann", why="fixed")
    assert watched.look() == ([0, 0, 0, 0], fourth.generation)
    assert first.generation < second.generation < third.generation < fourth.generation


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"generation": "x"}', b'{"global": false, "sybmols": {"v:A": ""}}', b"\xff\xfe"]
)
def test_kill_corrupt_file_kills_everything_and_is_logged(tmp_path, text):
    """I2: whatever cannot be read kills everything; the gauge's value says that no generation is obeyed."""
    watched = Watched(tmp_path)
    watched.look()
    kill_path(tmp_path).write_bytes(text)
    assert watched.look() == ([1, 1, 1, 1], UNREADABLE_GENERATION)
    event, values = watched.log.events[-1]
    assert event == "kill_file_unreadable"
    assert str(kill_path(tmp_path)) in values["error"]


def test_kill_corrupt_file_is_mended_by_kill_and_refused_by_unkill(tmp_path):
    """I4: `kill` makes a corrupt file a good one that kills everything, with a higher generation; `unkill` refuses."""
    good = kill(tmp_path, ["v:A"], who="ann", why="x")
    kill_path(tmp_path).write_bytes(b"{")
    with pytest.raises(ConfigError, match="must be readable to lift a kill"):
        unkill(tmp_path, None, who="ann", why="y")
    mended = kill(tmp_path, ["v:B"], who="ann", why="z")
    assert (mended.everything, mended.symbols) == (True, {"v:B": "z"})
    assert mended.generation > good.generation
    assert read_kill(tmp_path) == mended


def test_kill_directory_in_place_of_the_file_kills_everything(tmp_path):
    """A file that the system refuses to read kills everything too."""
    kill_path(tmp_path).mkdir()
    assert Watched(tmp_path).look() == ([1, 1, 1, 1], UNREADABLE_GENERATION)


def test_kill_unknown_symbol_is_warned_about_and_the_rest_counts(tmp_path):
    """A label that this run does not have is named in a warning; the others are killed."""
    state = kill(tmp_path, ["v:C", "other:X"], who="ann", why="x")
    watched = Watched(tmp_path)
    assert watched.look() == ([0, 0, 1, 0], state.generation)
    assert ("kill_symbols_unknown", {"symbols": ["other:X"]}) in watched.log.events


def test_kill_commands_at_once_all_count(tmp_path):
    """I3: of many changes at once none is lost, and every generation is used once."""
    states: list[KillState] = []
    threads = [
        threading.Thread(target=lambda i=i: states.append(kill(tmp_path, [f"v:{i}"], who="ann", why="x")))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(read_kill(tmp_path).symbols) == {f"v:{i}" for i in range(8)}
    assert len({state.generation for state in states}) == 8
