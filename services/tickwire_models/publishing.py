"""Changing the registry: publish, roll back, clear out. Reading is `tickwire.models.ModelRegistry`.

`<name>/<version>/` holds a version, `<name>/current` and `<name>/previous` name two of them, `<name>/.lock` is what
publishers hold.

I1  A version appears whole or not at all: it is written beside its place and renamed; then, and only then, `current` is
    replaced. A crash at any point leaves the previous version current, and at worst a leftover that `gc` removes.
I2  A version is never changed: the same content again is nothing new, other content is refused.
I3  Publishers of one model go one after the other, under an exclusive lock that the kernel frees when one dies.
I4  What `current` names can be resolved: it was checked as the live service checks it before it became current.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tickwire.errors import EngineError
from tickwire.models import Manifest, ModelRegistry
from tickwire.models.registry import CURRENT_FILE, MANIFEST_FILE, ONNX_FILE

PREVIOUS_FILE = "previous"
_LOCK_FILE = ".lock"
_LEFTOVER = ".publish-"


class Publisher:
    """Writes to one registry."""

    def __init__(self, folder: Path) -> None:
        """Name the registry's folder; it is made when something is published."""
        self._folder = folder

    def publish(self, manifest: Manifest, onnx: bytes, *, number: bool = False) -> Manifest:
        """Add a version and make it current; return its manifest.

        Args:
            manifest: Of the version.
            onnx: Its graph.
            number: Give it the next free number instead of the manifest's own version.

        Raises:
            EngineError: The version exists with other content, or the service would refuse it: nothing has changed.
        """
        home = self._folder / manifest.name
        with self._locked(home):
            if number:
                manifest = msgspec.structs.replace(manifest, version=str(self._next_number(home)))
            place = home / manifest.version
            files = {ONNX_FILE: onnx, MANIFEST_FILE: manifest.encode()}
            if place.exists():
                self._refuse_change(place, files)
                ModelRegistry(self._folder).resolve(manifest.name, manifest.version)
            else:
                self._place(home, place, files)
                self._check_or_remove(manifest, place)
            self._make_current(home, manifest.version)
        return manifest

    def rollback(self, name: str, version: str | None = None) -> str:
        """Make the version before the current one, or a named one, current again; return it.

        Raises:
            EngineError: There is none, or the service would refuse it.
        """
        home = self._folder / name
        self._require(home)
        with self._locked(home):
            version = version or _word(home / PREVIOUS_FILE)
            if version is None:
                raise EngineError(f"model {name!r}: must have a version before the current one to go back to, has none")
            ModelRegistry(self._folder).resolve(name, version)
            self._make_current(home, version)
        return version

    def gc(self, name: str, keep: int) -> list[str]:
        """Remove all but the newest `keep` versions, never the current or the previous one; return what went.

        Leftovers of publishers that died go too.

        Raises:
            EngineError: There is no such model.
        """
        home = self._folder / name
        self._require(home)
        with self._locked(home):
            kept = {_word(home / CURRENT_FILE), _word(home / PREVIOUS_FILE)}
            by_age = sorted(self._versions(home), key=_published_ns, reverse=True)
            going = [path for path in by_age[keep:] if path.name not in kept]
            for path in (*going, *home.glob(f"{_LEFTOVER}*")):
                doomed = path.rename(home / f"{_LEFTOVER}gone-{path.name}")  # no reader finds half a version
                shutil.rmtree(doomed)
        return [path.name for path in going]

    def versions(self, name: str) -> list[str]:
        """Return all versions, oldest first."""
        return [path.name for path in sorted(self._versions(self._folder / name), key=_published_ns)]

    def names(self) -> list[str]:
        """Return all models, sorted."""
        if not self._folder.is_dir():
            return []
        return sorted(path.name for path in self._folder.iterdir() if path.is_dir() and not path.name.startswith("."))

    def current(self, name: str) -> str | None:
        """Return the current version, None if there is none."""
        return _word(self._folder / name / CURRENT_FILE)

    def previous(self, name: str) -> str | None:
        """Return the version that was current before, None if there is none."""
        return _word(self._folder / name / PREVIOUS_FILE)

    @contextmanager
    def _locked(self, home: Path) -> Iterator[None]:
        home.mkdir(parents=True, exist_ok=True)
        with (home / _LOCK_FILE).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _require(self, home: Path) -> None:
        if not home.is_dir():
            raise EngineError(f"model {home.name!r}: must be in {self._folder}, is not")

    def _versions(self, home: Path) -> list[Path]:
        if not home.is_dir():
            return []
        return [path for path in home.iterdir() if path.is_dir() and not path.name.startswith(".")]

    def _next_number(self, home: Path) -> int:
        return 1 + max((int(path.name) for path in self._versions(home) if path.name.isdecimal()), default=0)

    def _refuse_change(self, place: Path, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            path = place / name
            if not path.is_file() or path.read_bytes() != content:
                raise EngineError(
                    f"model file {path}: exists with other content; a version never changes, publish a new one"
                )

    def _place(self, home: Path, place: Path, files: Mapping[str, bytes]) -> None:
        temporary = home / f"{_LEFTOVER}{place.name}-{os.getpid()}"
        if temporary.exists():
            shutil.rmtree(temporary)
        temporary.mkdir()
        for name, content in files.items():
            write_whole(temporary / name, content)
        _sync(temporary)
        temporary.rename(place)
        _sync(home)

    def _check_or_remove(self, manifest: Manifest, place: Path) -> None:
        try:
            ModelRegistry(self._folder).resolve(manifest.name, manifest.version)
        except EngineError:
            shutil.rmtree(place.rename(place.with_name(f"{_LEFTOVER}refused-{place.name}")))
            raise

    def _make_current(self, home: Path, version: str) -> None:
        before = _word(home / CURRENT_FILE)
        if before == version:
            return
        write_whole(home / CURRENT_FILE, f"{version}\n".encode())
        if before is not None:
            write_whole(home / PREVIOUS_FILE, f"{before}\n".encode())
        _sync(home)


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file atomically; its content is on the disk before its name is."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


# The folder's own time changes when a precision or an engine is added.
def _published_ns(version: Path) -> int:
    try:
        return (version / MANIFEST_FILE).stat().st_mtime_ns
    except OSError:
        return 0


def _word(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
