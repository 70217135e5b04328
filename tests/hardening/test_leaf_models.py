"""Linear models of leaves, and how they are refitted."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from prunus.hardening import leaf_models as module
from prunus.hardening.leaf_models import Fit, LeafModels, read_models, refit
from prunus.training import LOSSES
from tests.hardening.problems import Doubles, rows, soft_tree
from tests.tolerances import ROUNDING

N, D, K = 4000, 3, 2
LARGE = 10_000
"""With this many rows a penalty matters little."""


def zero_models(nodes: int = 3, *, d: int = D, k: int = K) -> LeafModels:
    return LeafModels(np.zeros((nodes, k)), np.zeros((nodes, k, d)))


def random_models(seed: int = 3) -> LeafModels:
    random = np.random.default_rng(seed)
    return LeafModels(random.normal(size=(3, K)), random.normal(size=(3, K, D)))


def problem(n: int = N, *, noise: float = 0.0, seed: int = 0) -> dict[str, Any]:
    """Rows whose targets are known linear functions, one for each of two leaves, and a map to other coordinates."""
    random = np.random.default_rng(seed)
    x = rows(n, D, seed=seed)
    ends = np.where(x[:, 0] < 0, 1, 2)
    matrix, offset = random.normal(size=(D, D)), random.normal(size=D)
    return {
        "models": zero_models(),
        "x": x,
        "matrix": matrix,
        "offset": offset,
        "wanted": random_models().outputs(x, ends) + noise * random.normal(size=(n, K)),
        "shared": np.zeros((n, K)),
        "weight": np.ones(n),
        "ends": ends,
        "held_out": np.arange(n) % 4 == 0,
        "fitted": np.ones(n, dtype=bool),
        "loss": LOSSES["squared_error"],
    }


def refitted(models: LeafModels, **case: Any) -> LeafModels:
    return refit(models, Fit(**case))


BY_ROW = ("x", "wanted", "shared", "weight", "ends", "held_out", "fitted")


def chosen(case: dict[str, Any], rows: Any) -> dict[str, Any]:
    """The case with these rows alone."""
    return case | {name: case[name][rows] for name in BY_ROW}


def error(models: LeafModels, case: dict[str, Any]) -> float:
    found: Doubles = models.outputs(case["x"], case["ends"]) - case["wanted"]
    return float(np.square(found).mean())


def test_outputs_are_those_of_the_leaf_of_each_row() -> None:
    models, x = random_models(), rows(20, D)
    ends = np.arange(20) % 3
    expected = [models.slope[node] @ row + models.constant[node] for node, row in zip(ends, x, strict=True)]
    assert_allclose(models.outputs(x, ends), expected)
    assert models.outputs(x[:0], ends[:0]).shape == (0, K)


def test_models_of_a_trained_tree_are_sums_along_paths() -> None:
    tree = soft_tree(d=D, k=K)
    models, x = read_models(tree), rows(30, D)
    leaf = torch.tensor([3, 4, 5, 6]).repeat(8)[:30]
    z = torch.zeros(30, 7)
    z[torch.arange(30), leaf] = z[torch.arange(30), (leaf - 1) // 2] = z[:, 0] = 1.0
    z[:, 0] = 1.0
    with torch.no_grad():
        expected = tree.head(tree.inputs(torch.from_numpy(x)), z).numpy()
    assert_allclose(models.outputs(x, leaf.numpy()), expected, rtol=1e-4, atol=1e-4)


def test_known_linear_models_are_found() -> None:
    case = problem(LARGE)
    fitted = refitted(**case)
    assert_allclose(fitted.constant[1:], random_models().constant[1:], atol=1e-3)
    assert_allclose(fitted.slope[1:], random_models().slope[1:], atol=1e-3)


def test_nodes_without_rows_keep_their_models() -> None:
    case = problem() | {"models": random_models(8)}
    fitted = refitted(**case)
    assert_array_equal(fitted.constant[0], random_models(8).constant[0])
    assert_array_equal(fitted.slope[0], random_models(8).slope[0])


def test_models_that_are_right_stay() -> None:
    case = problem(noise=0.0) | {"models": random_models()}
    fitted = refitted(**case)
    assert_allclose(fitted.constant, random_models().constant, atol=1e-9)
    assert_allclose(fitted.slope, random_models().slope, atol=1e-9)


def test_models_do_not_change_if_that_is_best_for_held_out_rows() -> None:
    case = problem(60, noise=5.0) | {"models": random_models()}
    wanted = case["wanted"].copy()
    wanted[case["held_out"]] = random_models().outputs(case["x"], case["ends"])[case["held_out"]]
    models = case["models"]
    assert refitted(**case | {"wanted": wanted}) is models


def test_held_out_rows_choose_the_strength(monkeypatch: pytest.MonkeyPatch) -> None:
    case = problem(80, noise=3.0) | {"held_out": np.arange(80) % 2 == 0}
    here = case["held_out"]
    rest = case | {"fitted": ~here}
    by_held_out = refitted(**rest)

    def losses(models: LeafModels) -> Doubles:
        found = models.outputs(case["x"][here], case["ends"][here]) - case["wanted"][here]
        squares: Doubles = np.square(found).mean(1)
        return squares

    of_strengths = {np.inf: losses(case["models"])}
    for strength in module.STRENGTHS:
        monkeypatch.setattr(module, "USUAL_STRENGTH", strength)
        of_strengths[strength] = losses(refitted(**rest | {"held_out": np.zeros(80, dtype=bool)}))
    assert_allclose(losses(by_held_out), of_strengths[module.strongest(of_strengths)])


def test_the_strongest_of_equally_good_strengths_is_chosen() -> None:
    losses = np.random.default_rng(0).random(100)
    noise = np.random.default_rng(1).normal(size=100)
    assert module.strongest({1.0: losses, 2.0: losses + 1.0, 3.0: losses + noise - noise.mean()}) == 3.0
    assert module.strongest({1.0: losses, 2.0: losses + 1.0, np.inf: losses + 0.5}) == 1.0
    assert module.strongest({1.0: losses + 1.0, np.inf: losses}) == np.inf
    assert module.strongest({1.0: losses[:1], 2.0: losses[:1]}) == 2.0


def test_held_out_rows_are_not_fitted_while_the_strength_is_chosen() -> None:
    case = problem(40, noise=0.1)
    found = refitted(**case | {"fitted": ~case["held_out"]})
    with_all = refitted(**case)
    assert not np.array_equal(found.slope, with_all.slope)
    assert error(with_all, case) < error(found, case)


def test_rows_that_are_not_fitted_do_not_matter_without_held_out_ones() -> None:
    case = problem(100, noise=1.0)
    some = np.arange(100) % 3 > 0
    nothing = np.zeros(100, dtype=bool)
    wanted = np.where(some[:, None], case["wanted"], 1e6)
    found = refitted(**case | {"wanted": wanted, "fitted": some, "held_out": nothing})
    expected = refitted(**chosen(case | {"held_out": nothing}, some))
    assert_allclose(found.constant, expected.constant)
    assert_allclose(found.slope, expected.slope)


def test_weights_are_repetitions() -> None:
    case = problem(60, noise=1.0) | {"held_out": np.zeros(60, dtype=bool)}
    times = 1 + np.arange(60) % 3
    weighted = refitted(**case | {"weight": times.astype(np.float64)})
    repeated = refitted(**chosen(case, np.arange(60).repeat(times)))
    assert_allclose(weighted.constant, repeated.constant)
    assert_allclose(weighted.slope, repeated.slope)


def test_a_weight_of_0_is_no_row() -> None:
    case = problem(60, noise=1.0)
    weight = (np.arange(60) % 5 > 0).astype(np.float64)
    wanted = np.where(weight[:, None] > 0, case["wanted"], 1e6)
    found = refitted(**case | {"weight": weight, "wanted": wanted})
    expected = refitted(**chosen(case, weight > 0))
    assert_allclose(found.slope, expected.slope)


def test_with_many_columns_only_constants_are_refitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REFITTED", D - 1)
    case = problem(LARGE)
    found = refitted(**case)
    assert not found.slope.any()
    for node in (1, 2):
        assert_allclose(found.constant[node], case["wanted"][case["ends"] == node].mean(0), atol=1e-2)


def test_the_models_given_do_not_change() -> None:
    case = problem() | {"models": random_models(8)}
    refitted(**case)
    assert_array_equal(case["models"].slope, random_models(8).slope)


def test_copies_of_a_column_make_no_trouble() -> None:
    case = problem(200)
    double = {"x": np.concatenate((case["x"], case["x"]), axis=1), "models": zero_models(d=2 * D)}
    double |= {"matrix": np.kron(np.eye(2), case["matrix"]), "offset": np.tile(case["offset"], 2)}
    found = refitted(**case | double)
    assert_allclose(found.slope[..., :D], found.slope[..., D:])
    assert error(found, case | double) < 1e-3


def test_leaves_are_fitted_to_what_the_shared_part_leaves() -> None:
    case = problem(200, noise=1.0)
    shared = np.random.default_rng(5).normal(size=(200, K))
    expected = refitted(**case)
    found = refitted(**case | {"shared": shared, "wanted": case["wanted"] + shared})
    assert_allclose(found.constant, expected.constant)
    assert_allclose(found.slope, expected.slope)


def classes(n: int, *, seed: int = 0) -> dict[str, Any]:
    """Rows whose classes are drawn with probabilities that are known in each of two leaves."""
    case, random = problem(n, seed=seed), np.random.default_rng(seed + 1)
    odds = np.exp(case["wanted"][:, 1] - case["wanted"][:, 0])
    case["wanted"] = np.eye(K)[(random.random(n) < odds / (1 + odds)).astype(int)]
    return case | {"loss": LOSSES["cross_entropy"], "matrix": np.eye(D), "offset": np.zeros(D)}


def test_known_probabilities_are_found() -> None:
    case = classes(LARGE)
    found = refitted(**case)
    for part in ("constant", "slope"):
        differences = [
            getattr(models, part)[1:, 1] - getattr(models, part)[1:, 0] for models in (found, random_models())
        ]
        assert_allclose(differences[0], differences[1], atol=0.2)


def test_weights_of_classes_are_repetitions() -> None:
    case, times = classes(60), 1 + np.arange(60) % 3
    weighted = refitted(**case | {"weight": times.astype(np.float64)})
    repeated = refitted(**chosen(case, np.arange(60).repeat(times)))
    assert_allclose(weighted.slope, repeated.slope, atol=1e-5)


def test_classes_are_fitted_to_what_the_shared_part_leaves() -> None:
    case, models = classes(2000), random_models()
    shared = models.outputs(case["x"], case["ends"])  # knows all
    found = refitted(**case | {"shared": shared})
    assert np.abs(found.outputs(case["x"], case["ends"])).mean() < 0.2


def test_classes_of_rows_that_are_not_fitted_do_not_matter() -> None:
    case = classes(60) | {"held_out": np.zeros(60, dtype=bool)}
    some = np.arange(60) % 3 > 0
    found = refitted(**case | {"fitted": some, "wanted": np.where(some[:, None], case["wanted"], 0.5)})
    assert_allclose(found.slope, refitted(**chosen(case, some)).slope, atol=1e-9)


def test_separable_classes_have_finite_models() -> None:
    case = classes(100)
    case["wanted"] = np.eye(K)[(case["x"][:, 1] > 0).astype(int)]
    found = refitted(**case)
    assert np.isfinite(found.slope).all()
    assert (found.outputs(case["x"], case["ends"]).argmax(1) == case["wanted"].argmax(1)).mean() > 0.95


@pytest.mark.parametrize("name", ["cross_entropy", "huber", "poisson"])
def test_the_gradient_of_a_refit_is_that_of_its_loss(name: str) -> None:
    random = np.random.default_rng(0)
    designs = [random.normal(size=(n, D)) for n in (5, 1, 8)]
    start, weight = random.normal(size=(K, 14)), random.uniform(size=(1, 14))
    wanted = random.dirichlet(np.ones(K), size=14).T
    change = torch.from_numpy(random.normal(size=(3, D, K))).requires_grad_()
    outputs = torch.cat([torch.from_numpy(x) @ own for x, own in zip(designs, change, strict=True)])
    losses = LOSSES[name](outputs + torch.from_numpy(start.T), torch.from_numpy(wanted.T))
    expected = (losses * torch.from_numpy(weight[0])).sum() + 0.3 * change.square().sum()
    (slope,) = torch.autograd.grad(expected, change)
    slopes = module.slopes_of(LOSSES[name])
    loss, grad = module._Penalized(designs, start, wanted, weight, 0.3, slopes)(change.detach().numpy())
    assert loss == pytest.approx(float(expected.detach()), rel=ROUNDING[torch.float64])
    assert_allclose(grad, slope, atol=ROUNDING[torch.float64])
