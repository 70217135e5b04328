"""Which backend runs, and what is said when a fast one cannot."""

import warnings

import pytest
import torch

from prunus.errors import BackendError, InputTypeError, InputValueError
from prunus.ops import available_backends, backends, tree_traverse
from prunus.ops.backends import choose_backend
from tests.ops.conftest import skip_unless_available
from tests.ops.problems import scores
from tests.subprocesses import run_without

SCRIPT = """
import json, warnings, torch
from prunus import ops
from prunus.errors import BackendError

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for s in (torch.tensor([[0.25]]), torch.tensor([[0.25]], dtype=torch.float64)):
        z, a = ops.tree_traverse(s, 0.5)
    ops.tree_argmin(ops.path_rewards(s), 0.5)
try:
    ops.tree_traverse(s, 0.5, backend="cpp")
    refusal = None
except BackendError as error:
    refusal = str(error)
print(json.dumps({
    "backends": ops.available_backends(),
    "z": z.tolist(),
    "warnings": [[w.category.__name__, str(w.message), w.filename] for w in caught],
    "refusal": refusal,
}))
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the backends whose kernels tree_traverse has used."""
    names: list[str] = []

    def record(name: str) -> backends.Kernels:
        names.append(name)
        return backends.kernels(name)

    monkeypatch.setattr("prunus.ops.argmin.kernels", record)
    return names


@pytest.mark.parametrize(
    ("device", "dtype", "expected"),
    [
        ("cpu", torch.float32, "cpp"),
        ("cpu", torch.float64, "cpp"),
        ("cuda", torch.float64, "reference"),
        *((device, torch.float32, "reference") for device in ("mps", "xpu", "meta")),
    ],
)
def test_auto_takes_the_fastest_that_fits(device: str, dtype: torch.dtype, expected: str) -> None:
    skip_unless_available("cpp")
    assert available_backends()[-1] == "reference"
    assert choose_backend("auto", device, dtype) == expected


def test_what_was_chosen_runs_forward_and_backward(asked: list[str]) -> None:
    skip_unless_available("cpp")
    tree_traverse(scores(5, 2), 1.0)
    torch.autograd.backward(tree_traverse(scores(5, 2).requires_grad_(), 1.0, backend="reference").z.sum())
    assert asked == ["cpp", "reference", "reference"]


def test_what_a_backend_does_not_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputTypeError, match=r"'triton' must be of torch\.float32, got dtype=torch\.float64"):
        choose_backend("triton", "cuda", torch.float64)
    with pytest.raises(InputValueError, match="'cpp' must be on cpu, got device='cuda'"):
        choose_backend("cpp", "cuda", torch.float32)
    monkeypatch.setattr(backends, "_load", lambda _: ImportError("no such library"))
    with pytest.raises(BackendError, match="the cpp backend is not available: no such library; install a C"):
        choose_backend("cpp", "cpu", torch.float32)


def test_without_the_extension_the_reference_runs_after_one_warning() -> None:
    report = run_without(("prunus._core",), SCRIPT)
    assert "cpp" not in report["backends"]
    assert report["z"] == [pytest.approx([1.0, 0.25 / 1.5, 0.75 / 1.5])]
    ((category, message, filename),) = report["warnings"]
    assert (category, filename) == ("RuntimeWarning", "<string>")  # it points at the caller
    assert all(part in message for part in ("cpp", "prunus._core", "C++17 compiler", "pip install"))
    assert all(part in report["refusal"] for part in ("cpp backend is not available", "prunus._core", "pip install"))


def test_with_the_extension_nothing_is_said() -> None:
    skip_unless_available("cpp")
    backends._fastest.cache_clear()
    backends._usable.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree_traverse(scores(5, 2), 1.0)
        tree_traverse(scores(5, 2), 1.0, backend="cpp")
