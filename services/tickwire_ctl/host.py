"""All processes of this host from one TOML: what `tickwire up` and `tickwire demo` run.

I1  Whatever ends it - a return, an error, an os_signal - the services are ended and the segments are gone.
I2  Services end in the order of the tick's path, so that what is under way is finished.
I3  Only ingest finishes by itself, at the end of its captures; that ends the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from tickwire.errors import RingNotFoundError, TickwireError
from tickwire.kernel import CompileProgress, compile_kernels
from tickwire.runtime import RunConfig, StatsReader
from tickwire.runtime import config as configuration
from tickwire.runtime.realtime import check_fifo
from tickwire_ctl.child import Child
from tickwire_ctl.segments import PrefixOwner
from tickwire_features.compiled import KERNEL_MODULES as FEATURES_MODULES
from tickwire_features.config import FeaturesConfig
from tickwire_inference.compiled import KERNEL_MODULES as INFERENCE_MODULES
from tickwire_inference.config import InferenceConfig
from tickwire_ingest.compiled import KERNEL_MODULES as INGEST_MODULES
from tickwire_ingest.config import IngestConfig
from tickwire_router.compiled import KERNEL_MODULES as ROUTER_MODULES
from tickwire_router.config import RouterConfig

ORDER = ("ingest", "features", "inference", "router")
"""Along the tick's path: services start from the end and stop from the beginning."""

KERNEL_MODULES = tuple(dict.fromkeys((*INGEST_MODULES, *FEATURES_MODULES, *INFERENCE_MODULES, *ROUTER_MODULES)))
CONFIG_TYPES: dict[str, type] = {
    "ingest": IngestConfig,
    "features": FeaturesConfig,
    "inference": InferenceConfig,
    "router": RouterConfig,
}

Event = Callable[[str, dict[str, Any]], None]
"""Told of each happening: name and values, as for a log."""


class Host:
    """The four services, their supervision and their segments."""

    def __init__(
        self,
        config: Path,
        overrides: Sequence[str],
        *,
        log_dir: Path | None,
        event: Event,
        hurried: Callable[[], bool] = lambda: False,
    ) -> None:
        """Read and check the whole configuration.

        Args:
            config: The TOML file.
            overrides: Assignments that take the place of the file's.
            log_dir: Folder of the services' logs; None hands them on to this process's output.
            event: Told of each happening.
            hurried: Says whether the services are to end without draining.

        Raises:
            ConfigError: Names file and place.
        """
        self.run: RunConfig = configuration.load_run(config, overrides=overrides)
        document, _ = configuration.read_document(self.run.path, overrides)
        for section, kind in CONFIG_TYPES.items():
            own: Any = configuration.convert(self.run.path, section, document.get(section, {}), kind)
            check_fifo(self.run, section, getattr(own, "wait_strategy", None))
        self._event = event
        self._hurried = hurried
        self._owner: PrefixOwner | None = None
        if log_dir is not None:
            log_dir.mkdir(parents=True, exist_ok=True)
        self.children = {
            service: Child(
                service,
                self.run.path,
                overrides,
                log_dir / f"{service}.log" if log_dir is not None else None,
                may_finish=service == "ingest",
            )
            for service in ORDER
        }

    def compile(self, progress: CompileProgress) -> None:
        """Compile what is not in the cache; may be interrupted.

        Raises:
            TickwireError: A kernel does not compile.
        """
        compile_kernels(KERNEL_MODULES, progress)

    def start(self) -> None:
        """Create the segments, start the processes.

        Raises:
            RingError: The prefix is in use, or there is no memory.
        """
        self.run.state_dir.mkdir(parents=True, exist_ok=True)
        self._owner = PrefixOwner(self.run.prefix)
        if self._owner.removed_stale:
            self._event("stale_segments_removed", {"segments": self._owner.removed_stale})
        self._owner.create(self.run.symbols)
        for service in reversed(ORDER):
            self.children[service].start()
            self._event("process_started", {"process": service, "pid": self.children[service].pid})

    def watch(self) -> None:
        """Restart what died; call it a few times a second.

        Raises:
            TickwireError: A service keeps dying, or cannot start; with the reason.
        """
        for service, child in self.children.items():
            happened = child.watch(partial(self._was_ready, service))
            if happened == "given_up":
                raise TickwireError(child.describe_end())
            if happened is not None:
                self._event(f"process_{happened}", {"process": service, "pid": child.pid, "restarts": child.restarts})

    def _was_ready(self, service: str) -> bool:
        try:
            reader = StatsReader.attach(self.run.prefix, service)
        except RingNotFoundError:
            return False
        try:
            return reader.was_ready
        finally:
            reader.close()

    @property
    def finished(self) -> bool:
        """Whether ingest has come to the end of its captures."""
        return self.children["ingest"].finished

    def stop(self) -> None:
        """End the services along the tick's path and remove the segments (I1, I2)."""
        timeout_s = self.run.table.drain_timeout_s + 2.0
        started_s = time.monotonic()
        for service in ORDER:
            self.children[service].terminate()
            self.children[service].join(timeout_s, self._hurried)
        if self._owner is not None:
            self._owner.release()
            self._owner = None
            self._event("host_stopped", {"seconds": round(time.monotonic() - started_s, 3)})

    def __enter__(self) -> Host:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()
