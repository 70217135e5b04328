"""Fitted estimators as ONNX files, which run without Python: table in, predictions out."""

from prunus.onnx.export import export_onnx

__all__ = ["export_onnx"]
