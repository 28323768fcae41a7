"""Configuration: what is wrong is named with file and place."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tickwire.errors import ConfigError
from tickwire.runtime.config import load, load_run

SYMBOL = '[[symbols]]\nvenue = "v"\nname = "A"\nprice_increment = "0.1"\nquantity_increment = "1"\n'


class Own(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A service's table."""

    pace: int = 1
    names: list[str] = []


def write(tmp_path, text):
    path = tmp_path / "host.toml"
    path.write_text(text)
    return path


def test_load_gives_both_parts_with_paths_of_the_file(tmp_path):
    """Shared and own part, symbols in order, relative paths from the file's folder, a hash of the content."""
    path = write(tmp_path, f'[run]\nprefix = "a"\nstate_dir = "../s"\n[ingest]\npace = 3\n{SYMBOL}')
    run, own = load(path, "ingest", Own)
    assert own.pace == 3
    assert (run.prefix, run.state_dir, run.closed_loop) == ("a", (tmp_path / "../s").resolve(), False)
    assert [instrument.label for instrument in run.symbols] == ["v:A"]
    assert run.resolve("x/y") == tmp_path / "x/y"
    assert run.resolve("/x/y").as_posix() == "/x/y"
    assert run.hash != load(path, "ingest", Own, overrides=("ingest.pace = 4",))[0].hash
    assert run.hash == load_run(path).hash


def test_overrides_take_the_place_of_the_files_values(tmp_path):
    """Assignments are merged into the tables; later ones win; tables that are not there appear."""
    path = write(tmp_path, f'[ingest]\npace = 3\nnames = ["a"]\n{SYMBOL}')
    run, own = load(path, "ingest", Own, overrides=("ingest.pace = 4", "ingest.pace = 5", 'run.prefix = "b"'))
    assert (own.pace, own.names, run.prefix) == (5, ["a"], "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ingest]\npace = 'x'\n" + SYMBOL, r"Expected `int`, got `str` - at `\$\.ingest\.pace`"),
        ("[ingest]\nnames = [1]\n" + SYMBOL, r"Expected `str`, got `int` - at `\$\.ingest\.names\[0\]`"),
        ("[ingest]\nspeed = 1\n" + SYMBOL, r"unknown field `speed` - at `\$\.ingest`"),
        ("[run]\nlog_level = 'loud'\n" + SYMBOL, r"Invalid enum value 'loud' - at `\$\.run\.log_level`"),
        ("[run]\ndrain_timeout_s = 0\n" + SYMBOL, r"`float` > 0.0 - at `\$\.run\.drain_timeout_s`"),
        ("[run]\nprefix = 'A b'\n" + SYMBOL, r"prefix must match .* was 'A b' - at `\$\.run`"),
        ("[run]\ncores = { x = [1] }\n" + SYMBOL, r"Invalid enum value 'x' - at .*\$\.run\.cores"),
        ("[run]\nendpoints.x = 'h:1'\n" + SYMBOL, r"Invalid enum value 'x' - at .*\$\.run\.endpoints"),
        ("[run]\nendpoints.router = '9104'\n" + SYMBOL, r"matching regex .* - at `\$\.run\.endpoints"),
        ("[other]\n" + SYMBOL, r"unknown table at `\$\.other`; there are `\$\.run`"),
        ("", r"symbols: must be 1 to 4096, were 0 - at `\$\.symbols`"),
        (SYMBOL + SYMBOL, r"'v:A' is given twice - at `\$\.symbols`"),
        (SYMBOL.replace("0.1", "-1"), r"must be a positive decimal, was '-1' - at `\$\.symbols\[0\]`"),
        ("ingest = 3\n" + SYMBOL, r"Expected `object`, got `int` - at `\$\.ingest`"),
        ("[run]\nlog_colour = 1\n" + SYMBOL, r"unknown field `log_colour` - at `\$\.run`"),
        ("[run]\ncores = { router = [-1] }\n" + SYMBOL, r"`int` >= 0 - at `\$\.run\.cores\[\.\.\.\]\[0\]`"),
        ("[run]\nprefix = '%s'\n" % ("a" * 33) + SYMBOL, r"prefix must match .* - at `\$\.run`"),
        ("[symbols]\nname = 'A'\n", r"Expected `array`, got `object` - at `\$\.symbols`"),
        (SYMBOL + "colour = 1\n", r"unknown field `colour` - at `\$\.symbols\[0\]`"),
        (SYMBOL.replace('name = "A"\n', ""), r"missing required field `name` - at `\$\.symbols\[0\]`"),
        ("[run\n", r"must be TOML: .*line 1"),
    ],
)
def test_load_wrong_file_names_file_and_place(tmp_path, text, message):
    """Unknown fields and tables, types, bounds and rules: each refused where it stands."""
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=message) as caught:
        load(path, "ingest", Own)
    assert str(caught.value).startswith(f"{path}: ")


def test_load_missing_file_and_bad_override_are_named(tmp_path):
    """A file that is not there; an override that is no assignment."""
    with pytest.raises(ConfigError, match=r"no\.toml: cannot be read: No such file"):
        load_run(tmp_path / "no.toml")
    with pytest.raises(ConfigError, match=r"override 'pace': must be a TOML assignment"):
        load_run(write(tmp_path, SYMBOL), overrides=("pace",))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("other.x = 1", r"unknown table at `\$\.other`"),
        ("ingest.speed = 1", r"unknown field `speed` - at `\$\.ingest`"),
        ("ingest = 1", r"Expected `object`, got `int` - at `\$\.ingest`"),
        ("run.prefix.x = 1", r"Expected `str`, got `object` - at `\$\.run\.prefix`"),
    ],
)
def test_load_wrong_override_names_file_and_place(tmp_path, override, message):
    """An override is held to the same rules as the file, whatever stood in its place."""
    path = write(tmp_path, SYMBOL)
    with pytest.raises(ConfigError, match=message) as caught:
        load(path, "ingest", Own, overrides=(override,))
    assert str(caught.value).startswith(f"{path}: ")


def test_load_file_that_is_no_text_or_a_folder_is_named(tmp_path):
    """Bytes that are not UTF-8, and a folder."""
    path = tmp_path / "host.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"host\.toml: must be TOML: 'utf-8' codec"):
        load_run(path)
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_run(tmp_path)


@pytest.mark.parametrize("prefix", ["a", "tick-wire_2", "a" * 32])
def test_prefix_in_the_allowed_alphabet_is_taken(tmp_path, prefix):
    """1 to 32 of lower-case letters, digits, - and _."""
    assert load_run(write(tmp_path, f'[run]\nprefix = "{prefix}"\n{SYMBOL}')).prefix == prefix


@pytest.mark.parametrize("prefix", ["", "A", "a.b", "a/b", "a b", "ä"])
def test_prefix_outside_the_alphabet_is_refused(tmp_path, prefix):
    """A dot would be another name's part, a slash a folder."""
    with pytest.raises(ConfigError, match=r"prefix must match \[a-z0-9_-\]\{1,32\}, was .* - at `\$\.run`"):
        load_run(write(tmp_path, f'[run]\nprefix = "{prefix}"\n{SYMBOL}'))


def test_paths_are_relative_to_the_file_not_to_the_working_directory(tmp_path, monkeypatch):
    """The file may be given as a relative path; what stands in it starts from its own folder."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "host.toml").write_text(f'[run]\nstate_dir = "state"\n{SYMBOL}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ann")
    run = load_run(Path("conf/host.toml"))
    assert run.state_dir == tmp_path / "conf" / "state"
    assert run.path == tmp_path / "conf" / "host.toml"
    assert run.resolve("~/x").as_posix() == "/home/ann/x"
