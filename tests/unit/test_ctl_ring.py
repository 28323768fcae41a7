"""`tickwire ring`: what operators see of rings, and what counts as stale."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from ring_processes import fill, spec_of
from tickwire.errors import RingLayoutError
from tickwire.ring import BackPressure, Consumer, Producer
from tickwire.ring.discovery import find_rings
from tickwire.ring.inspect import inspect_named, inspect_ring
from tickwire.ring.layout import CAPACITY_AT, MAX_CONSUMERS_AT, VERSION_AT
from tickwire.ring.segment import Segment, list_segments, segment_name
from tickwire_ctl import ring as ring_module
from tickwire_ctl.cli import main
from tickwire_ctl.ring_values import producer_text
from tickwire_ctl.segments import PrefixOwner
from tickwire_ctl.stale import remove_stale, tickwire_prefixes

SHM = Path("/dev/shm")
LOSSLESS = spec_of("lossless", 64, 64)
LOSSY = spec_of("lossy", 64, 64)


def run(*arguments: str) -> str:
    """The output of a command that ends well."""
    result = CliRunner().invoke(main, ["ring", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def records(count: int) -> np.ndarray:
    made = np.zeros(count, dtype=LOSSLESS.dtype)
    fill(made, 0)
    return made


@pytest.fixture
def ring(prefix):
    """A lossless ring with 48 of 64 slots taken, a live consumer that has committed 16 and one that left at 0."""
    with Producer.attach(prefix, LOSSLESS) as producer:
        Consumer.attach(prefix, LOSSLESS, name="gone").close()
        with Consumer.attach(prefix, LOSSLESS, name="slow") as consumer:
            producer.publish(records(32))
            producer.publish(records(16))
            consumer.poll(16)
            consumer.commit()
            yield producer


def test_ls_json_has_mode_fill_lag_and_life_of_each_ring(ring, prefix):
    """One object a ring, with the values of the second of two looks."""
    (row,) = json.loads(run("ls", "--json", "--prefix", prefix, "--interval-s", "0.01"))
    assert (row["name"], row["mode"], row["capacity"], row["slot_bytes"]) == (f"{prefix}.stress", "lossless", 64, 64)
    assert (row["published"], row["fill_ratio"], row["rate_per_s"]) == (48, 0.75, 0.0)
    assert (row["producer_alive"], row["epoch"]) == (True, 1)
    gone, slow = row["consumers"]
    assert (gone["name"], gone["lag"], gone["alive"], gone["observer"]) == ("gone", 48, False, False)
    assert (slow["name"], slow["lag"], slow["alive"], slow["evicted"]) == ("slow", 32, True, False)


def test_ls_evicted_consumer_counts_no_more_and_is_named(prefix):
    """I5: the fill is that of the consumers that hold the producer back; a lap shows as lost."""
    with Producer.attach(prefix, LOSSLESS, stall_timeout_ms=0) as producer:
        with Consumer.attach(prefix, LOSSLESS, name="gone"):
            for _ in range(3):
                while isinstance(producer.publish(records(32)), BackPressure):
                    pass
        (row,) = json.loads(run("ls", "--json", "--prefix", prefix, "--interval-s", "0.01"))
        assert (row["fill_ratio"], row["consumers"][0]["evicted"]) == (0.0, True)
        assert "evicted" in run("ls", "--prefix", prefix, "--interval-s", "0.01")


def test_rate_is_records_over_the_time_between_two_looks(ring, prefix):
    """From two looks of one generation; a ring made anew in between has none."""
    before = inspect_ring(prefix, LOSSLESS)
    ring.publish(records(16))
    after = inspect_named(f"{prefix}.stress")
    expected = 16 * 1e9 / (after.looked_ns - before.looked_ns)
    assert after.rate_since(before) == pytest.approx(expected)
    assert before.rate_since(before) is None
    for name in list_segments(prefix):
        (SHM / name).unlink()
    with Producer.attach(prefix, LOSSLESS):
        assert inspect_ring(prefix, LOSSLESS).rate_since(before) is None


def test_show_takes_the_name_with_or_without_prefix(ring, prefix):
    """`show` prints every value and a line a consumer; an unknown ring is one clear line."""
    whole = json.loads(run("show", f"{prefix}.stress", "--json", "--interval-s", "0.01"))
    short = json.loads(run("show", "stress", "--prefix", prefix, "--json", "--interval-s", "0.01"))
    assert whole.pop("producer_silent_s") <= short.pop("producer_silent_s")
    assert whole == short
    text = run("show", f"{prefix}.stress", "--interval-s", "0.01")
    assert "published          48" in text
    assert "slow" in text
    missing = CliRunner().invoke(main, ["ring", "show", f"{prefix}.nope", "--interval-s", "0.01"])
    assert missing.exit_code == 1
    assert f"ring '{prefix}.nope': must exist, does not" in missing.output


@pytest.mark.parametrize(("offset", "text"), [(VERSION_AT, "version must be 1, is 99"), (CAPACITY_AT, "size must be")])
def test_ls_ring_of_another_release_is_listed_with_the_reason(prefix, offset, text):
    """A ring that cannot be read hides no other one: its line says why."""
    Producer.attach(prefix, LOSSY).close()
    segment = Segment.open(f"{prefix}.stress", writable=True)
    segment.array(np.uint32, offset, 1)[0] = 99
    segment.close()
    (row,) = json.loads(run("ls", "--json", "--prefix", prefix, "--interval-s", "0.01"))
    assert text in row["error"]
    assert "release" in run("ls", "--prefix", prefix, "--interval-s", "0.01")


def test_inspect_header_that_contradicts_itself_is_an_error(prefix):
    """No header, however wrong, makes a look read beyond the segment."""
    Producer.attach(prefix, LOSSY).close()
    segment = Segment.open(f"{prefix}.stress", writable=True)
    segment.array(np.uint32, MAX_CONSUMERS_AT, 1)[0] = 1000
    segment.close()
    with pytest.raises(RingLayoutError, match="max_consumers must be possible"):
        inspect_named(f"{prefix}.stress")


def test_find_rings_goes_by_magic_not_by_name(ring, prefix):
    """Control segments, foreign files, links and short files are no rings, whatever they are called."""
    (SHM / f"{prefix}.foreign").write_bytes(b"x" * 8192)
    (SHM / f"{prefix}.short").write_bytes(b"TW")
    (SHM / f"{prefix}.link").symlink_to(SHM / f"{prefix}.stress")
    assert find_rings(prefix) == [f"{prefix}.stress"]
    assert f"{prefix}.stress" in find_rings()
    assert prefix in tickwire_prefixes()


@pytest.mark.parametrize(
    ("alive", "silent_s", "rate", "text"),
    [(False, 0.0, 0.0, "none"), (True, 0.1, 0.0, "alive"), (True, 9.0, 5.0, "alive"), (True, 9.0, 0.0, "silent 9 s")],
)
def test_producer_text_says_whether_it_beats(alive, silent_s, rate, text):
    """A producer that holds its lock but neither beats nor publishes is silent: stopped, or stuck."""
    assert producer_text({"producer_alive": alive, "producer_silent_s": silent_s, "rate_per_s": rate}) == text


def test_rm_needs_the_word_stale(prefix):
    """There is no removal of anything that lives."""
    result = CliRunner().invoke(main, ["ring", "rm", "--prefix", prefix])
    assert result.exit_code == 2
    assert "say --stale" in result.output


@pytest.mark.parametrize("holder", ["producer", "consumer"])
def test_rm_stale_leaves_a_prefix_with_any_lock_held(prefix, holder):
    """I2: one live lock on one ring keeps every segment of the prefix, and is named as the reason."""
    Producer.attach(prefix, spec_of("lossy", 64, 128)).close()
    for name in list_segments(prefix):  # a second ring, of a dead run
        (SHM / name).rename(SHM / name.replace("stress", "other"))
    with Producer.attach(prefix, LOSSY) as producer, Consumer.attach(prefix, LOSSY, name="reader"):
        if holder == "consumer":
            producer.close()
        before = list_segments(prefix)
        text = run("rm", "--stale", "--prefix", prefix)
        assert list_segments(prefix) == before
        assert f"left {prefix}.other: a process is alive on {prefix}.stress.ctl" in text
        assert "removed nothing" in text
    assert f"removed 4 segments of {prefix!r}" in run("rm", "--stale", "--prefix", prefix)
    assert list_segments(prefix) == []


def test_rm_stale_leaves_the_prefix_of_a_live_owner(prefix):
    """I3: `tickwire up` holds the prefix even before anybody is attached."""
    owner = PrefixOwner(prefix)
    Producer.attach(prefix, LOSSY).close()
    before = list_segments(prefix)
    removal = remove_stale(prefix)
    assert removal.removed == []
    assert set(removal.left) == set(before) == set(list_segments(prefix))
    assert "`tickwire up` with pid" in removal.left[f"{prefix}.stress"]
    owner.release()


def test_rm_stale_removes_ours_and_names_what_is_not(prefix):
    """I1: magic decides; half-made files of a killed creator go too, a stranger's file stays."""
    Producer.attach(prefix, LOSSY).close()
    (SHM / f"{prefix}.symbols.123.tmp").touch()
    (SHM / f"{prefix}.notes").write_bytes(b"not ours")
    removal = remove_stale(prefix)
    assert sorted(removal.removed) == [f"{prefix}.stress", f"{prefix}.stress.ctl", f"{prefix}.symbols.123.tmp"]
    assert removal.left == {f"{prefix}.notes": "is no Tickwire segment"}
    assert list_segments(prefix) == [f"{prefix}.notes"]


def test_rm_stale_foreign_owner_file_is_not_written(prefix):
    """I1: a stranger's file under the owner's name stays as it is, and keeps the rest."""
    Producer.attach(prefix, LOSSY).close()
    path = SHM / segment_name(prefix, "owner")
    path.write_bytes(b"f" * 64)
    path.chmod(0o640)
    assert "must be Tickwire's" in remove_stale(prefix).left[f"{prefix}.stress"]
    assert path.read_bytes() == b"f" * 64


def test_rm_stale_without_prefix_goes_through_all(prefix, monkeypatch):
    """Each prefix is judged on its own: the dead one's segments go, the live one's stay."""
    dead, live = f"{prefix}-a", f"{prefix}-b"
    Producer.attach(dead, LOSSY).close()
    monkeypatch.setattr(ring_module, "tickwire_prefixes", lambda: [dead, live])
    with Producer.attach(live, LOSSY):
        text = run("rm", "--stale")
        left = list_segments(live)
    assert f"removed 2 segments of {dead!r}: {dead}.stress, {dead}.stress.ctl" in text
    assert f"left {live}.stress: a process is alive on {live}.stress.ctl" in text
    assert (list_segments(dead), left) == ([], [f"{live}.stress", f"{live}.stress.ctl"])
    assert len(remove_stale(live).removed) == 2
