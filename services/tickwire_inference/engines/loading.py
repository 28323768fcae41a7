"""From configuration to engines: the primary, and whoever serves in its place."""

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
        return _rule(config)
    return load_model(models_dir, config.model, config.version)


def load_model(models_dir: Path, name: str, version: str | None) -> HostEngine:
    """Return a model on the engine that serves models here, loaded and not yet warmed.

    Args:
        models_dir: The registry's folder.
        name: The model.
        version: Its version; the registry's current one if None.

    Raises:
        EngineError: The model cannot be used.
    """
    return OnnxRuntimeEngine(ModelRegistry(models_dir).resolve(name, version))


def load_fallbacks(config: InferenceConfig, models_dir: Path) -> list[HostEngine]:
    """Return the fallbacks in order, loaded and not yet warmed.

    Raises:
        EngineError: One of them cannot be used.
    """
    registry = ModelRegistry(models_dir)
    fallbacks: list[HostEngine] = []
    for label in config.fallback_models:
        name, _, version = label.partition("@")
        fallbacks.append(OnnxRuntimeEngine(registry.resolve(name, version or None)))
    if config.fallback_rule:
        fallbacks.append(_rule(config))
    return fallbacks


def _rule(config: InferenceConfig) -> RuleEngine:
    return RuleEngine(config.rule_window_rows, config.rule_gain)
