"""Settings of all tests: Ctrl-C, instructions that oneDNN may use, and what the examples in docstrings need."""

import os
import signal

# A shell lets programs in the background ignore Ctrl-C. Tests that interrupt a fit, and programs that they start, would
# then never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Some virtual machines say that their processor has AMX, but do not enable it. Products in half precision by torch's
# oneDNN then end with "Illegal instruction". oneDNN reads its limit when torch is imported, so it is set before that;
# programs that tests start inherit it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

from importlib.util import find_spec

import pytest
import torch

from prunus import ops

NEED_TRITON = [
    "src/prunus/ops/triton*",
    *(f"src/prunus/training/gpu/{name}.py" for name in ("passes", "tables", "trees")),
]
collect_ignore_glob = [] if find_spec("triton") else NEED_TRITON


@pytest.fixture(autouse=True, scope="session")
def _names_in_examples(doctest_namespace: dict[str, object]) -> None:
    """Examples use these names without importing them."""
    doctest_namespace["torch"] = torch
    doctest_namespace.update({name: getattr(ops, name) for name in ops.__all__})
