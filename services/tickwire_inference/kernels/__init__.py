"""Compiled parts of inference: queue, batching decision, host windows, command slots and the scheduler's loop."""
