"""The `tickwire` command without a host: help, errors as one line, exit codes, what each command says of nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner, Result

from signal_processes import SYMBOLS, signals_of
from tickwire.records import Action
from tickwire.ring import Producer
from tickwire.ring.header import request_stop
from tickwire.ring.segment import Segment, list_segments, segment_name
from tickwire.ring.symbol_segment import publish_symbols
from tickwire.runtime import ServiceState, Stats
from tickwire.runtime.clock import monotonic_ns
from tickwire.topology import SIGNALS
from tickwire_ctl.cli import main
from tickwire_ctl.host import ORDER
from tickwire_ctl.segments import PrefixOwner
from tickwire_features.stats import FEATURES_STATS
from tickwire_inference.stats import INFERENCE_STATS
from tickwire_ingest.stats import INGEST_STATS
from tickwire_router.kill_switch import kill_path, read_kill
from tickwire_router.stats import ROUTER_STATS

SPECS = {"ingest": INGEST_STATS, "features": FEATURES_STATS, "inference": INFERENCE_STATS, "router": ROUTER_STATS}
CONFIG = """
[run]
prefix = "{prefix}"
state_dir = "state"

[[symbols]]
venue = "v"
name = "A"
price_increment = "0.5"
quantity_increment = "0.01"
"""


@pytest.fixture(autouse=True)
def os_signal_handlers():
    """Commands take the process's handlers; give them back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def config(prefix, tmp_path):
    path = tmp_path / "host.toml"
    path.write_text(CONFIG.format(prefix=prefix))
    return path


@pytest.fixture
def services(prefix):
    """Statistics of all four services, READY, as live ones keep them."""
    made = {name: Stats.create(prefix, name, SPECS[name], ("v:A",)) for name in ORDER}
    for stats in made.values():
        stats.set_state(ServiceState.READY)
    yield made
    for stats in made.values():
        stats.close()


def tickwire(*arguments: object) -> Result:
    """Run a command; nothing but an exit code may come out of it."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def error_of(result: Result) -> str:
    """The one line of an error."""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("Error: ")
    return lines[0]


COMMANDS = [
    "demo",
    "up",
    "anchor",
    "status",
    "top",
    "tail",
    "down",
    "doctor",
    "kill",
    "unkill",
    "ring",
    "header",
    "compile",
    "model",
]


def test_help_lists_every_command_with_a_sentence():
    """`tickwire -h` is enough to find one's way."""
    result = tickwire("-h")
    assert result.exit_code == 0
    rows = dict(line.split(None, 1) for line in result.output.partition("Commands:")[2].splitlines() if line.strip())
    assert sorted(rows) == sorted(COMMANDS)
    assert all(len(text) > 20 for text in rows.values())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_there_in_both_spellings(command):
    """-h and --help, exit code 0."""
    short, long = tickwire(command, "-h"), tickwire(command, "--help")
    assert (short.exit_code, long.exit_code) == (0, 0)
    assert short.output == long.output
    assert f"Usage: main {command}" in short.output


def test_version_and_unknown_command():
    """The version is the package's; a command that does not exist is wrong input."""
    assert tickwire("--version").output.startswith("tickwire, version ")
    result = tickwire("fly")
    assert result.exit_code == 2
    assert "No such command 'fly'" in result.stderr


@pytest.mark.parametrize("command", ["demo", "up", "status", "tail", "down", "kill", "unkill"])
def test_missing_configuration_is_named_and_exits_2(command):
    """One line with the file's name, whatever the command."""
    result = tickwire(command, "--config", "/no/such.toml")
    assert result.exit_code == 2
    assert error_of(result) == "Error: /no/such.toml: cannot be read: No such file or directory"


@pytest.mark.parametrize("command", ["demo", "up", "kill", "unkill"])
@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("nonsense", "override 'nonsense': must be a TOML assignment"),
        ("run.colour = 1", "unknown field `colour` - at `$.run`"),
        ("other.x = 1", "unknown table at `$.other`"),
    ],
)
def test_wrong_setting_is_named_and_exits_2(config, prefix, command, setting, text):
    """File and place; nothing is started and nothing is written."""
    result = tickwire(command, "--config", config, "--set", setting)
    assert result.exit_code == 2
    assert text in error_of(result)
    assert not list_segments(prefix)
    assert not (config.parent / "state").exists()


@pytest.mark.parametrize("command", ["up", "demo"])
def test_wrong_value_of_any_service_is_found_before_anything_starts(config, prefix, command):
    """The whole file is checked, not only the part that is read first."""
    setting = "router.enter_probability = 7"
    captures = "ingest.captures = [{ path = 'x.gz', format = 'kraken' }]"
    result = tickwire(command, "--config", config, "--set", captures, "--set", setting)
    assert result.exit_code == 2
    assert "`$.router.enter_probability`" in error_of(result)
    assert not list_segments(prefix)


@pytest.mark.parametrize("command", ["status", "tail", "down"])
def test_wrong_prefix_is_refused(command):
    """What could not be a prefix is not searched for."""
    result = tickwire(command, "--prefix", "../x")
    assert result.exit_code == 2
    assert "prefix: must match [a-z0-9_-]{1,32}, was '../x'" in error_of(result)


def test_demo_wrong_values_are_refused_before_anything_starts(tmp_path):
    """A pace that is none, no time at all, a result that could not be written."""
    result = tickwire("demo", "--pace", "fast")
    assert result.exit_code == 2
    assert "pace must be realtime, max, closed or xN such as x4, was 'fast' - at `$.ingest`" in error_of(result)
    assert "'--seconds': 0.0 is not in the range x>0" in tickwire("demo", "--seconds", "0").stderr
    assert "its folder must exist" in error_of(tickwire("demo", "--json", tmp_path / "no" / "x.json"))


def status(prefix: str) -> tuple[int, dict]:
    result = tickwire("status", "--json", "--prefix", prefix)
    return result.exit_code, json.loads(result.output)


def test_status_of_nothing_is_4(prefix):
    """Nothing runs: every service ABSENT, no ring, no symbol; the table says so too."""
    code, seen = status(prefix)
    assert (code, seen["health"], seen["rings"], seen["symbols"]) == (4, "down", {}, {})
    assert {name: view["state"] for name, view in seen["services"].items()} == dict.fromkeys(ORDER, "ABSENT")
    result = tickwire("status", "--prefix", prefix)
    assert result.exit_code == 4
    assert f"prefix '{prefix}': down (not READY: ingest, features, inference, router)" in result.output


def test_status_of_a_configuration_takes_its_prefix(config, prefix):
    """`--prefix` goes before the file's."""
    assert json.loads(tickwire("status", "--json", "--config", config).output)["prefix"] == prefix
    assert json.loads(tickwire("status", "--json", "--config", config, "--prefix", "x").output)["prefix"] == "x"


def test_status_all_ready_is_0_and_one_missing_is_3(prefix, services):
    """Degraded names the service that is not READY."""
    assert status(prefix)[0] == 0
    services["inference"].set_state(ServiceState.FAILED)
    code, seen = status(prefix)
    assert (code, seen["health"], seen["why"]) == (3, "degraded", "not READY: inference")


def test_status_heartbeat_that_stands_still_is_not_healthy(prefix, services, monkeypatch):
    """A killed process leaves READY behind; its heartbeat tells."""
    services["router"].heartbeat()
    beat_ns = monotonic_ns()
    monkeypatch.setattr("tickwire_ctl.observe.monotonic_ns", lambda: beat_ns + 3_000_000_000)
    code, seen = status(prefix)
    assert (code, seen["health"]) == (4, "down")
    assert seen["services"]["router"]["state"] == "READY"
    assert seen["services"]["router"]["heartbeat_age_s"] >= 3.0


def test_status_of_a_run_that_has_just_ended_is_4(prefix, services):
    """STOPPED and FAILED are not alive, however fresh their last heartbeat."""
    for name, stats in services.items():
        stats.set_state(ServiceState.FAILED if name == "router" else ServiceState.STOPPED)
    code, seen = status(prefix)
    assert (code, seen["health"]) == (4, "down")


def test_down_of_nothing_says_so(prefix):
    """Nothing to do is no error."""
    result = tickwire("down", "--prefix", prefix)
    assert (result.exit_code, result.output) == (0, f"nothing runs with prefix {prefix!r}\n")


def test_down_removes_what_a_dead_run_left(prefix, services):
    """Segments without an owner go, and are counted."""
    result = tickwire("down", "--prefix", prefix)
    assert (result.exit_code, result.output) == (0, f"removed 4 segments of a dead run with prefix {prefix!r}\n")
    assert list_segments(prefix) == []


DEAF_OWNER = """
import signal, sys
from tickwire_ctl.segments import PrefixOwner
signal.signal(signal.SIGTERM, signal.SIG_IGN)
owner = PrefixOwner(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""


def test_down_owner_that_does_not_end_is_an_error_by_pid(prefix):
    """An owner that is still alive after the time is named, and left alone."""
    command = [sys.executable, "-c", DEAF_OWNER, prefix]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        result = tickwire("down", "--prefix", prefix, "--timeout-s", "0")
        assert result.exit_code == 1
        assert f"`tickwire up` with pid {owner.pid} must end within 0 s, did not" in error_of(result)
        assert owner.poll() is None


def test_down_pid_of_another_namespace_is_not_signalled(prefix):
    """Where containers share /dev/shm, the owner's pid may be somebody else's here, or nobody's: it is refused."""
    owner = PrefixOwner(prefix)
    segment = Segment.open(segment_name(prefix, "owner"), writable=True)
    try:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as somebody:
            for alive in (True, False):
                segment.array(np.uint64, 16, 1)[0] = somebody.pid
                result = tickwire("down", "--prefix", prefix, "--timeout-s", "0")
                assert result.exit_code == 1
                assert f"pid {somebody.pid} must be of this PID namespace and user, is not" in error_of(result)
                if alive:
                    assert somebody.poll() is None
                    somebody.communicate(b"\n")
                    assert somebody.returncode == 0
    finally:
        segment.close()
        owner.release()


def test_kill_without_a_router_is_written_and_says_who_will_obey(config, prefix):
    """The switch counts from the router's next start; unkill is the way back."""
    result = tickwire("kill", "--why", "drill", "--config", config)
    assert result.exit_code == 0
    assert result.output == (
        f"killed everything; no router runs with prefix {prefix!r}: it will hold from its next start\n"
    )
    state = read_kill(config.parent / "state")
    assert (state.everything, state.why) == (True, "drill")
    assert state.who
    result = tickwire("unkill", "--config", config)
    assert result.exit_code == 0
    assert "lifted the kill of everything; no router runs" in result.output
    assert not read_kill(config.parent / "state").everything


def test_kill_symbol_by_name_leaves_the_rest(config):
    """Only the named symbol is killed, and only that is lifted."""
    assert "killed v:A;" in tickwire("kill", "v:A", "--config", config).output
    state = read_kill(config.parent / "state")
    assert (state.everything, list(state.symbols)) == (False, ["v:A"])
    assert "lifted the kill of v:A;" in tickwire("unkill", "v:A", "--config", config).output
    assert not read_kill(config.parent / "state").symbols


@pytest.mark.parametrize("command", ["kill", "unkill"])
def test_kill_unknown_symbol_is_refused_and_nothing_is_written(config, command):
    """A typing error must not look like a kill; the known ones are named."""
    result = tickwire(command, "v:A", "v:B", "--config", config)
    assert result.exit_code == 2
    assert error_of(result) == "Error: symbol 'v:B': must be one of the run's, which are v:A"
    assert not kill_path(config.parent / "state").exists()


def test_kill_user_without_a_name_is_no_obstacle(config, monkeypatch):
    """In a container the uid may have no entry: the kill still counts, under the number."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 987_654)
    assert tickwire("kill", "--config", config).exit_code == 0
    assert read_kill(config.parent / "state").who == "uid 987654"


def test_kill_router_that_obeys_confirms(config, services):
    """The gauge has reached the switch's generation."""
    services["router"].gauges[ROUTER_STATS.gauge("kill_generation")] = 1 << 62
    result = tickwire("kill", "--config", config)
    assert result.exit_code == 0
    assert "killed everything; confirmed by the router after " in result.output


@pytest.mark.parametrize("state", [ServiceState.READY, ServiceState.FAILED])
def test_kill_router_that_does_not_obey_is_told_loudly(config, services, state, monkeypatch):
    """The switch is written, but the exit code is 1 and the text says NOT: nobody may rely on it yet."""
    monkeypatch.setattr("tickwire_ctl.kill._CONFIRM_S", 0.0)
    services["router"].set_state(state)
    result = tickwire("kill", "--config", config)
    assert result.exit_code == 1
    assert f"killed everything; the router has NOT confirmed: it is {state.name}" in result.stderr
    assert read_kill(config.parent / "state").everything


def test_unkill_unreadable_switch_is_refused(config):
    """What cannot be read kills everything, and is not lifted unseen."""
    path = kill_path(config.parent / "state")
    path.parent.mkdir()
    path.write_bytes(b"{")
    result = tickwire("unkill", "--config", config)
    assert result.exit_code == 2
    assert f"{path}: must be readable to lift a kill" in error_of(result)
    assert path.read_bytes() == b"{"


@pytest.fixture
def signals(prefix):
    """A signals ring with 3,000 signals whose run is over."""
    publish_symbols(prefix, SYMBOLS)
    with Producer.attach(prefix, SIGNALS, symbol_table_hash=SYMBOLS.hash) as producer:
        for first in range(0, 3000, 500):
            producer.publish(signals_of(first, 500))
        request_stop(prefix, SIGNALS)
        yield producer


def test_tail_ends_with_the_run_after_everything_it_published(prefix, signals):
    """A run that is over ends the command, but not before its last signal is printed."""
    result = tickwire("tail", "--prefix", prefix, "--oldest", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["sequence"] for line in lines] == list(range(3000))
    assert lines[8]["symbol"] == "v:A"
    assert lines[8]["action"] == "BUY"
    assert lines[8]["kind"] == "SIGNAL"
    assert lines[8]["quantity"] == "0.003"
    assert lines[8]["limit_price"] == "0.08"
    assert (lines[7]["kind"], lines[7]["limit_price"]) == ("WITHDRAWN", None)


def test_tail_filters_by_symbol_and_action_and_counts(prefix, signals):
    """Only what was asked for is printed, and counted."""
    wanted = ("--symbol", "w:B/USD", "--action", "SELL", "--count", "3", "--json")
    result = tickwire("tail", "--prefix", prefix, "--oldest", *wanted)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(lines) == 3
    assert {(line["symbol"], line["action"]) for line in lines} == {("w:B/USD", Action.SELL.name)}
    text = tickwire("tail", "--prefix", prefix, "--oldest", "--count", "2").stdout
    assert [line.split()[1:3] for line in text.splitlines()] == [["v:A", "WITHDRAWN"], ["w:B/USD", "SELL"]]


def test_tail_unknown_symbol_is_refused_with_the_known_ones(prefix, signals):
    """A typing error would print nothing for ever."""
    result = tickwire("tail", "--prefix", prefix, "--symbol", "v:X")
    assert result.exit_code == 2
    assert error_of(result) == "Error: symbol 'v:X': must be one of the run's, which are v:A, w:B/USD"


def test_tail_of_nothing_is_named_and_exits_1(prefix):
    """The ring, how long it was waited for, and what to look at."""
    result = tickwire("tail", "--prefix", prefix, "--timeout-s", "0")
    assert result.exit_code == 1
    assert f"ring '{prefix}.signals': must exist, did not appear within 0 s" in error_of(result)
