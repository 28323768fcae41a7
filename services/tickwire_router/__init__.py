"""Router: turns predictions into signals, under a kill switch, and hands them to strategies.

Light to import: the router's kernels are compiled when `tickwire_router.service` is imported, not before.
"""

from tickwire_router.config import RouterConfig, SymbolRule
from tickwire_router.kill_switch import KillState, kill, read_kill, unkill
from tickwire_router.stats import ROUTER_STATS

__all__ = ["ROUTER_STATS", "KillState", "RouterConfig", "SymbolRule", "kill", "read_kill", "unkill"]
