"""Layers and operators on seeded inputs: values, and gradients of a random function of them."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.harness.corpus.files import saved_texts
from benchmarks.harness.corpus.outputs import Outputs
from prunus.metrics import dendrogram_purity
from prunus.nn import (
    AdditiveHead,
    ConstantHead,
    ELUSplit,
    LinearHead,
    LinearSplit,
    MLPHead,
    MLPSplit,
    SparseMLPSplit,
    TreeLayer,
    TreeModel,
    Whiten,
    spread_splits,
)
from prunus.ops import TreeArgmin, integer_pruning, path_rewards, tree_argmin, tree_traverse

__all__ = ["LAYERS"]

DEPTH, INPUTS, OUTPUTS = 3, 4, 2
SPLITS, NODES = 2**DEPTH - 1, 2 ** (DEPTH + 1) - 1

Solve = Callable[..., TreeArgmin]


def _drawn(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).to(dtype)


def _with_gradients(values: Mapping[str, Tensor], inputs: Mapping[str, Tensor]) -> Outputs:
    """The values, and the gradients of the sum of their products with random numbers."""
    total = torch.zeros((), dtype=torch.float64)
    for i, value in enumerate(values.values()):
        total = total + (value * _drawn(*value.shape, seed=100 + i, dtype=value.dtype)).sum()
    gradients = torch.autograd.grad(total, list(inputs.values()), materialize_grads=True)
    found: Outputs = {f"{name}.npy": value.detach().numpy() for name, value in values.items()}
    return found | {f"gradient_{name}.npy": grad.numpy() for name, grad in zip(inputs, gradients, strict=True)}


def _model(
    folder: Path, *, split: Callable[[], nn.Module], head: Callable[[], nn.Module], final_scale: float = 1.0
) -> Outputs:
    """A model of whitened inputs: in training, where it prunes, and afterwards, with masses of all rows."""
    x, weight = _drawn(100, INPUTS, seed=11), _drawn(100, seed=12).abs()
    x[:, 1] += 0.8 * x[:, 0]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(13)
        tree = TreeLayer(split(), DEPTH, pruning_strength=20.0, batch_size=50, final_scale=final_scale)
        model = TreeModel(tree, head(), Whiten(INPUTS).fit(x))
        spread_splits(tree.split, model.inputs(x), generator=torch.Generator().manual_seed(14))
        with torch.no_grad():  # most leaves start at 0
            for i, parameter in enumerate(model.head.parameters()):
                parameter.add_(_drawn(*parameter.shape, seed=20 + i), alpha=0.3)
        for part in (tree, tree.split):  # as a trainer does in the middle of a run
            getattr(part, "on_progress", float)(0.5)
        inputs = {"x": x.clone().requires_grad_()} | dict(model.named_parameters())
        found = _with_gradients({"training": model(inputs["x"], weight)}, inputs)
    model.solve_masses(x, weight)
    model.eval()
    found |= {f"eval_{file}": value for file, value in _with_gradients({"out": model(inputs["x"])}, inputs).items()}
    found["masses.npy"] = tree.a.numpy()
    return found | saved_texts(model, folder / "model.prunus")


def _solved(solve: Solve, width: int, dtype: torch.dtype, backend: str, lam: float, *, weighted: bool) -> Outputs:
    """Routes and masses, and gradients of what they are solved from."""
    inputs = {"x": _drawn(60, width, seed=15, dtype=dtype), "lam": torch.tensor(lam, dtype=dtype)}
    if weighted:
        inputs["weight"] = _drawn(60, seed=16, dtype=dtype).abs()
    for one in inputs.values():
        one.requires_grad_()
    z, a = solve(inputs["x"], inputs["lam"], sample_weight=inputs.get("weight"), backend=backend)
    return _with_gradients({"z": z, "a": a}, inputs)


def _all_solved(_: Path, *, solve: Solve, width: int) -> Outputs:
    """In both precisions, by the compiled and the plain code, with and without weights, lightly and strongly pruned."""
    found: Outputs = {}
    for dtype, backend, lam, weighted in product(
        (torch.float32, torch.float64), ("cpp", "reference"), (0.0, 40.0), (False, True)
    ):
        name = f"{backend}_{str(dtype).removeprefix('torch.')}_lam{lam:g}{'_weighted' * weighted}"
        one = _solved(solve, width, dtype, backend, lam, weighted=weighted)
        found |= {f"{name}_{file}": value for file, value in one.items()}
    return found


def _rewards(_: Path) -> Outputs:
    """The rewards of nodes, and which nodes are kept for them."""
    s = _drawn(60, SPLITS, seed=17, dtype=torch.float64).requires_grad_()
    q = path_rewards(s)
    weight = _drawn(60, seed=18, dtype=torch.float64).abs()
    found = _with_gradients({"q": q}, {"s": s})
    for lam in (0.0, 10.0, 40.0):
        found[f"kept_lam{lam:g}.npy"] = integer_pruning(q, lam, sample_weight=weight).numpy()
    return found


def _purity(_: Path) -> Outputs:
    """The purity of a tree in heap order, and of merges, each with the one before."""
    random = np.random.default_rng(19)
    leaves, y = random.integers(7, 15, 80), random.integers(0, 3, 80)
    merges = np.column_stack((np.r_[0, 80 + np.arange(78)], 1 + np.arange(79)))
    found: Outputs = {}
    for name, own in product(("nodes", "merges"), (False, True)):
        purity = dendrogram_purity(leaves if name == "nodes" else merges, y, self_pairs=own)
        found[f"purity_{name}{'_self' * own}.npy"] = np.array(purity)
    return found


def _models() -> Iterator[tuple[str, Callable[[Path], Outputs]]]:
    """Every kind of split, and every kind of leaf."""
    linear = partial(LinearSplit, INPUTS, DEPTH)
    constant = partial(ConstantHead, INPUTS, DEPTH, OUTPUTS)
    yield "linear-constant", partial(_model, split=linear, head=constant)
    yield "linear-constant-scaled", partial(_model, split=linear, head=constant, final_scale=30.0)
    yield "linear-few-columns", partial(_model, split=partial(LinearSplit, INPUTS, DEPTH, 2), head=constant)
    yield "linear-additive", partial(_model, split=linear, head=partial(AdditiveHead, INPUTS, DEPTH, OUTPUTS))
    yield "linear-linear", partial(_model, split=linear, head=partial(LinearHead, INPUTS, DEPTH, OUTPUTS))
    network = partial(MLPHead, INPUTS, DEPTH, OUTPUTS, (8, 8), 0.25)
    yield "linear-mlp-dropout", partial(_model, split=linear, head=network)
    yield "elu-constant", partial(_model, split=partial(ELUSplit, INPUTS, DEPTH), head=constant)
    yield "mlp-constant", partial(_model, split=partial(MLPSplit, INPUTS, DEPTH), head=constant)
    yield "sparse-mlp-constant", partial(_model, split=partial(SparseMLPSplit, INPUTS, DEPTH, 16), head=constant)


LAYERS: dict[str, Callable[[Path], Outputs]] = {
    **{f"nn-{name}": entry for name, entry in _models()},
    "ops-traverse": partial(_all_solved, solve=tree_traverse, width=SPLITS),
    "ops-argmin": partial(_all_solved, solve=tree_argmin, width=NODES),
    "ops-rewards-pruning": _rewards,
    "metrics-purity": _purity,
}
"""Functions, by the names of their entries, that return what they compute; files are written into the folder."""
