"""Tickwire: trading signals from market data through lock-free shared-memory rings.

Strategies import `tickwire.client`; the other packages are what the services are built of.
"""

__version__ = "0.1.0"
