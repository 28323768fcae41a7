"""Inference: from rows to predictions. Batches by deadline, runs a model, answers every request exactly once.

Light to import: the kernels are compiled when `tickwire_inference.service` is imported, not before.
"""

from tickwire_inference.config import InferenceConfig, PriorityClass, SymbolOverride
from tickwire_inference.stats import INFERENCE_STATS

__all__ = ["INFERENCE_STATS", "InferenceConfig", "PriorityClass", "SymbolOverride"]
