"""ONNX Runtime reports nothing to its vendor: the switch is set before it is imported."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import builtins, os
real = builtins.__import__
def watching(name, *rest):
    if name == "onnxruntime":
        print(os.environ.get("ORT_DISABLE_TELEMETRY"))
        raise SystemExit
    return real(name, *rest)
builtins.__import__ = watching
import tickwire_inference.engines.onnx
"""


def test_onnx_engine_switches_reports_off_before_the_import():
    """Set later, the library would have begun already."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout == "1\n"
