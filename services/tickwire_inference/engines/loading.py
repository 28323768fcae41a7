"""From configuration to a warmed engine."""

from __future__ import annotations

from pathlib import Path

from tickwire.models import ModelRegistry
from tickwire_inference.config import InferenceConfig
from tickwire_inference.engines.onnx import OnnxRuntimeEngine
from tickwire_inference.engines.protocol import HostEngine
from tickwire_inference.engines.rule import RuleEngine


def load_engine(config: InferenceConfig, models_dir: Path) -> HostEngine:
    """Return the engine that the configuration names, loaded and not yet warmed.

    Args:
        config: The service's configuration.
        models_dir: Its `models_dir`, resolved.

    Raises:
        EngineError: The model cannot be used.
    """
    if config.engine == "rule":
        return RuleEngine(config.rule_window_rows, config.rule_gain)
    return OnnxRuntimeEngine(ModelRegistry(models_dir).resolve(config.model, config.version))
