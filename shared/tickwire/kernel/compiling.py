"""Compiling kernels before any process starts, so that a service loads them in a fraction of a second.

Each package is compiled by a process of its own, as many at a time as there are cores; the cache is what they share.

    python -m tickwire.kernel MODULE ...        one such process: a line for each module it has done
"""

from __future__ import annotations

import importlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

from tickwire.errors import ConfigError, TickwireError
from tickwire.kernel.cache import can_store, is_compiled, mark_compiled

CompileProgress = Callable[[int, int, str], None]
"""Called with (modules done, modules to do, name of the module done last) whenever one is done."""


def compile_kernels(modules: Sequence[str], progress: CompileProgress | None = None) -> None:
    """Compile the kernel modules that are not in the cache; returns at once when all are.

    Modules of `tickwire` itself come first, since the services' kernels contain them. Where there is no writable cache
    nothing is done: each process then compiles for itself.

    Args:
        modules: Dotted names of kernel modules.
        progress: Told of each module; what it raises ends the compilation.

    Raises:
        ConfigError: A module does not exist.
        TickwireError: A module does not compile; with what the compiler said.
    """
    todo = [name for name in modules if not is_compiled(name) and can_store(name)]
    done = 0
    shared = [name for name in todo if name.startswith("tickwire.")]
    services = [name for name in todo if not name.startswith("tickwire.")]
    packages = dict.fromkeys(name.partition(".")[0] for name in services)
    for batches in ([shared], [[n for n in services if n.partition(".")[0] == package] for package in packages]):
        for name in _run(sorted((batch for batch in batches if batch), key=len, reverse=True)):
            done += 1
            if progress is not None:
                progress(done, len(todo), name)


def compile_here(modules: Sequence[str]) -> None:
    """Import kernel modules, which compiles them or loads them from the cache; write a line for each.

    Raises:
        ConfigError: A module does not exist.
    """
    for name in modules:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ConfigError(f"kernel module {name!r}: must be importable, was not found: {error}") from error
        mark_compiled(name)
        sys.stdout.write(name + "\n")
        sys.stdout.flush()


def _run(batches: list[list[str]]) -> Iterator[str]:
    # Yields the modules that worker processes have done; ends the processes whatever happens.
    waiting = list(batches)
    running: list[subprocess.Popen[str]] = []
    lines: queue.Queue[tuple[subprocess.Popen[str], str | None]] = queue.Queue()
    try:
        while waiting or running:
            while waiting and len(running) < len(os.sched_getaffinity(0)):
                running.append(_start(waiting.pop(0), lines))
            process, line = lines.get()
            if line is not None:
                yield line
                continue
            running.remove(process)
            _, complaint = process.communicate()
            if process.returncode != 0:
                raise TickwireError(f"kernels: {complaint.strip()}")
    finally:
        for process in running:
            process.kill()
            process.communicate()


def _start(batch: list[str], lines: queue.Queue[tuple[subprocess.Popen[str], str | None]]) -> subprocess.Popen[str]:
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module, no shell
        [sys.executable, "-m", "tickwire.kernel", *batch],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )

    def read() -> None:
        # stdout is closed by this thread alone; `communicate` then waits for the process and its stderr.
        out, process.stdout = process.stdout, None
        assert out is not None
        with out:
            for line in out:
                lines.put((process, line.strip()))
        lines.put((process, None))

    threading.Thread(target=read, name="compile-lines", daemon=True).start()
    return process
