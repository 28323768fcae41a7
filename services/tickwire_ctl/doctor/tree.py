"""Reading /proc, /sys and /dev below a root, so that tests can examine a host that does not exist."""

from __future__ import annotations

from pathlib import Path


class Tree:
    """The files of a host."""

    def __init__(self, root: Path) -> None:
        """Read below `root`, which is `/` on a real host."""
        self.root = root

    def text(self, path: str) -> str | None:
        """Return a file's text without the white space around it, None where it cannot be read."""
        try:
            return (self.root / path).read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None

    def matches(self, pattern: str) -> list[Path]:
        """Return the paths that match a pattern, relative to the root, sorted."""
        return sorted(path.relative_to(self.root) for path in self.root.glob(pattern))

    def exists(self, path: str) -> bool:
        """Say whether there is such a file or folder."""
        return (self.root / path).exists()


def cpus_of(text: str) -> set[int]:
    """Return the CPUs of a kernel's list, such as `0-3,8`.

    Raises:
        ValueError: It is no such list.
    """
    cpus: set[int] = set()
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


def listed(cpus: set[int]) -> str:
    """Return CPUs as a kernel's list, shortest form."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
