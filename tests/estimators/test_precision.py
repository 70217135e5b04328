"""Estimators compute in single and double precision only, unless a user asks for less."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from prunus import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor
from prunus.fitting.training_options import nested

X = np.random.default_rng(0).normal(size=(60, 3))
FULL = {torch.float32, torch.float64}


class DtypeRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the dtypes of all floating point tensors that go into torch's operators or come out of them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.dtypes: set[torch.dtype] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        tensors = (value for value in tree_leaves((args, kwargs, out)) if isinstance(value, Tensor))
        self.dtypes |= {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
        return out


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def regress(**options: Any) -> Any:
    tree = ArgminTreeRegressor(depth=2, max_epochs=2, random_state=0).set_params(**nested(options)).fit(X, X[:, 0])
    tree.predict(X)
    tree.predict(X, hard=True)
    return tree


def classify(**options: Any) -> Any:
    tree = ArgminTreeClassifier(depth=2, max_epochs=2, random_state=0).set_params(**nested(options)).fit(X, X[:, 0] > 0)
    tree.predict_proba(X)
    tree.apply(X)
    return tree


def cluster() -> Any:
    tree = ArgminTreeClusterer(depth=2, max_epochs=2, random_state=0).fit(X)
    tree.predict(X)
    return tree


@pytest.mark.parametrize(
    ("fit", "dtype"),
    [
        (lambda: regress(leaf="constant", pieces=4), torch.bfloat16),
        (lambda: regress(leaf="linear", split="mlp", optimizer="qhadam"), torch.float16),
        (lambda: classify(leaf="mlp", split="elu", optimizer="sgd"), torch.bfloat16),
        (lambda: classify(leaf="additive", split="sparse_mlp"), torch.float16),
        (cluster, torch.bfloat16),
    ],
    ids=["constant", "linear", "mlp", "additive", "clusters"],
)
def test_a_fit_has_no_half_precision_by_default(fit: Callable[[], Any], dtype: torch.dtype) -> None:
    with default_dtype(dtype), DtypeRecorder() as recorder:
        tree = fit()
        assert torch.get_default_dtype() == dtype
    assert torch.float32 in recorder.dtypes <= FULL
    assert {value.dtype for value in tree.model_.state_dict().values() if value.is_floating_point()} == {torch.float32}


def test_the_recorder_sees_half_precision() -> None:
    with default_dtype(torch.bfloat16), DtypeRecorder() as recorder:
        torch.ones(1)
    assert recorder.dtypes == {torch.bfloat16}
