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
EXTENSION = ("prunus._core",)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the backends whose kernels tree_traverse has used."""
    names: list[str] = []

    def record(name: str) -> backends.Kernels:
        names.append(name)
        return backends.kernels(name)

    monkeypatch.setattr("prunus.ops.argmin.kernels", record)
    return names


def test_reference_is_always_available() -> None:
    assert available_backends()[-1] == "reference"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_auto_takes_cpp_on_the_cpu(dtype: torch.dtype) -> None:
    skip_unless_available("cpp")
    assert choose_backend("auto", "cpu", dtype) == "cpp"


def test_auto_takes_the_reference_for_double_precision_on_cuda() -> None:
    assert choose_backend("auto", "cuda", torch.float64) == "reference"


@pytest.mark.parametrize("device", ["mps", "xpu", "meta"])
def test_auto_takes_the_reference_on_other_devices(device: str) -> None:
    assert choose_backend("auto", device, torch.float32) == "reference"


def test_auto_runs_what_it_chose(asked: list[str]) -> None:
    skip_unless_available("cpp")
    tree_traverse(scores(5, 2), 1.0)
    assert asked == ["cpp"]


def test_backward_runs_on_the_backend_of_the_forward(asked: list[str]) -> None:
    s = scores(5, 2).requires_grad_()
    torch.autograd.backward(tree_traverse(s, 1.0, backend="reference").z.sum())
    assert asked == ["reference", "reference"]


def test_a_dtype_that_the_backend_does_not_take() -> None:
    with pytest.raises(InputTypeError, match=r"'triton' must be of torch\.float32, got dtype=torch\.float64"):
        choose_backend("triton", "cuda", torch.float64)


def test_a_device_that_the_backend_does_not_take() -> None:
    with pytest.raises(InputValueError, match="'cpp' must be on cpu, got device='cuda'"):
        choose_backend("cpp", "cuda", torch.float32)


def test_without_the_extension_the_reference_runs() -> None:
    report = run_without(EXTENSION, SCRIPT)
    assert "cpp" not in report["backends"]
    assert report["z"] == [pytest.approx([1.0, 0.25 / 1.5, 0.75 / 1.5])]


def test_without_the_extension_one_warning_says_why_and_how_to_get_it() -> None:
    ((category, message, _),) = run_without(EXTENSION, SCRIPT)["warnings"]
    assert category == "RuntimeWarning"
    assert "cpp" in message
    assert "prunus._core" in message
    assert "C++17 compiler" in message
    assert "pip install" in message


def test_without_the_extension_the_warning_points_at_the_caller() -> None:
    ((_, _, filename),) = run_without(EXTENSION, SCRIPT)["warnings"]
    assert filename == "<string>"


def test_without_the_extension_asking_for_it_raises_with_the_cure() -> None:
    message = run_without(EXTENSION, SCRIPT)["refusal"]
    assert "cpp backend is not available" in message
    assert "prunus._core" in message
    assert "pip install" in message


def test_with_the_extension_nothing_is_said() -> None:
    skip_unless_available("cpp")
    backends._fastest.cache_clear()
    backends._usable.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree_traverse(scores(5, 2), 1.0)
        tree_traverse(scores(5, 2), 1.0, backend="cpp")


def test_a_missing_backend_raises_its_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_load", lambda _: ImportError("no such library"))
    with pytest.raises(BackendError, match="the cpp backend is not available: no such library; install a C"):
        choose_backend("cpp", "cpu", torch.float32)
