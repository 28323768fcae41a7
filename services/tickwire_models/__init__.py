"""Models offline: data sets from captures, training, judgement, export to ONNX, publication."""
