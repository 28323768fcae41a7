"""The `tickwire` command: run a host, watch it, stop it."""
