"""Inference engines: what turns windows into probabilities."""

from tickwire_inference.engines.loading import load_engine, load_fallbacks, load_model
from tickwire_inference.engines.onnx import OnnxRuntimeEngine
from tickwire_inference.engines.protocol import Engine, HostEngine
from tickwire_inference.engines.rule import RuleEngine

__all__ = ["Engine", "HostEngine", "OnnxRuntimeEngine", "RuleEngine", "load_engine", "load_fallbacks", "load_model"]
