"""Fitted estimators as ONNX files, which turn tables into predictions without Python."""

from prunus.onnx.export import export_onnx

__all__ = ["export_onnx"]
