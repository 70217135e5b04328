"""Where kernels of GPUs run in tests: on an NVIDIA GPU, or on a CPU by triton's interpreter, TRITON_INTERPRET=1."""

import os
from importlib.util import find_spec

import torch

__all__ = ["DEVICE", "HAS_TRITON", "IS_INTERPRETED"]

HAS_TRITON = find_spec("triton") is not None
IS_INTERPRETED = HAS_TRITON and os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
