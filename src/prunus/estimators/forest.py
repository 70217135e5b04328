"""What forests share: their options, the fit, and means of what their trees predict."""

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from prunus.data import TableEncoder
from prunus.data.source import open_source
from prunus.errors import InputValueError
from prunus.estimators.device_rows import through_device
from prunus.estimators.format import OF_FILES
from prunus.estimators.notebook import html_with_picture, mimebundle_with_picture
from prunus.estimators.options import (
    AUTO,
    AUTO_CONSTRAINTS,
    CONSTRAINTS,
    OF_TRAINING,
    Auto,
    refuse_others,
    with_training,
)
from prunus.estimators.predicting import encode, map_rows, rows_to_write
from prunus.estimators.scikit_learn import BaseEstimator
from prunus.estimators.tree import CHUNK, ArgminTree
from prunus.fitting.choosing import check_tuning_seconds, choose, chooses, tree_kinds
from prunus.fitting.devices import prediction_device
from prunus.fitting.forest import FittedForest, ForestOptions, fit_forest
from prunus.fitting.options import FitOptions, checkpoint_files, forest_checkpoints
from prunus.fitting.prepare import Data, open_data
from prunus.fitting.rows import encode_training
from prunus.fitting.run import Fitted, draw_seed
from prunus.fitting.torch_state import plain_torch
from prunus.fitting.training_options import TrainingOptions, nested
from prunus.tree.prediction import DeviceTree, find_ends, has_network, row_outputs

__all__ = ["ArgminForest", "tree_predictions"]

Doubles = npt.NDArray[np.float64]

OF_EACH = ("n_jobs", "random_state", "warm_start", "verbose")
"""The options of a forest that its trees do not inherit."""


@dataclass(kw_only=True, repr=False, eq=False)
class ArgminForest(BaseEstimator):
    """Several trees, each with a seed, rows and columns of its own, whose predictions are averaged."""

    n_trees: int = 16
    bootstrap: bool = False
    max_features: float = 1.0
    oob_score: bool = False
    depth: int | Auto = AUTO
    pruning_strength: float = 1.0
    routing: Literal["soft", "hard"] = "soft"
    split: Any = "linear"
    max_split_features: int | None = None
    max_leaf_nodes: int | None = None
    max_leaf_features: int | None = None
    leaf: str = AUTO
    hidden_layer_sizes: Any = (64, 64, 64)
    pieces: int | Auto = AUTO
    loss: Any = "squared_error"
    max_epochs: int | Auto = AUTO
    training: TrainingOptions | None = None
    device: Any = AUTO
    n_jobs: int | None = None
    random_state: Any = None
    warm_start: bool = False
    verbose: int = 0
    tuning_seconds: float | None = None

    encoder_: TableEncoder = field(init=False)
    target_: Any = field(init=False)
    estimators_: list[Any] = field(init=False)
    chosen_: dict[str, Any] = field(init=False)
    oob_score_: float = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: npt.NDArray[np.object_] = field(init=False)
    keeps_checkpoint: ClassVar[bool] = False
    """Whether checkpoints outlive `fit`: the command line removes them only after the model has been saved."""
    _seed: int = field(init=False)
    _seen: npt.NDArray[np.uint8] | None = field(init=False)

    tree_kind: ClassVar[type[ArgminTree]]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: kinds for name, kinds in CONSTRAINTS.items() if name != "callbacks"},
        **AUTO_CONSTRAINTS,
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "bootstrap": ["boolean"],
        "max_features": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="right")],
        "oob_score": ["boolean"],
    }

    @property
    def training_options(self) -> TrainingOptions:
        """The options of training, also where `training` is None."""
        return self.training or TrainingOptions()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options by their names.

        Parameters
        ----------
        deep : bool, default=True
            Whether those of `training` are among them, as ``training__learning_rate`` for instance.

        Returns
        -------
        dict
        """
        params: dict[str, Any] = super().get_params(deep=False)
        own = vars(self.training) if deep and isinstance(self.training, TrainingOptions) else {}
        return params | {f"training__{name}": value for name, value in own.items()}

    def set_params(self, **params: Any) -> Self:
        """Change options.

        Parameters
        ----------
        params : dict
            Options by their names; those of `training` as ``training__learning_rate`` for instance.

        Returns
        -------
        The estimator itself.
        """
        refuse_others(type(self), params, OF_TRAINING)
        changed: Self = super().set_params(**with_training(self.training, params))
        return changed

    @plain_torch()
    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any) -> Self:  # noqa: N803
        """Fit in numbered steps. The forest does not change before the end, so that a fit that fails leaves it."""
        source = open_data(X, y, sample_weight, eval_set, validation_fraction=self.training_options.validation_fraction)
        if self.oob_score and source.sample is not source:
            raise InputValueError("oob_score must be False for a table in files beyond memory, got True")
        options, is_continued = FitOptions.of(self), self.__sklearn_is_fitted__() and self.warm_start
        # 1. Options that are "auto" are chosen.
        chosen = self._choose(options, source, is_continued=is_continued)
        kinds = [{}] if chosen is None else tree_kinds(chosen)
        # 2. The trees are trained side by side, each with a seed, rows and columns of its own; earlier ones stay.
        earlier = self.estimators_ if is_continued else []
        forest = ForestOptions(
            n_trees=self.n_trees,
            bootstrap=self.bootstrap,
            max_features=self.max_features,
            oob_score=self.oob_score,
            has_eval_set=eval_set is not None,
        )
        seed = self._seed if is_continued else draw_seed(self.random_state, self.training_options.checkpoint)
        before = self._fitted() if is_continued else None
        fitted = fit_forest(options, forest, kinds, source, self._target_of, seed, before=before, earlier=len(earlier))
        # 3. What was learned is kept, and nothing of an earlier fit that this one does not continue.
        kept = OF_FILES if is_continued else ()
        for name in [name for name in vars(self) if name.endswith("_") and name not in kept]:
            delattr(self, name)
        self._take(fitted, earlier)
        if chosen is not None:
            self.chosen_ = chosen
        self._remove_checkpoints()
        if self.oob_score:
            self._score_out_of_bag(X, y, sample_weight)
        return self

    def _make_target(self, y: Any) -> Any:
        raise NotImplementedError

    def _target_of(self, _encoder: TableEncoder, y: Any) -> Any:
        return self._make_target(y)

    def _choose(self, options: FitOptions, source: Data, *, is_continued: bool) -> dict[str, Any] | None:
        """What is best for options that are "auto"; None if none are. A warm start keeps what was chosen."""
        if not chooses(options):
            check_tuning_seconds(self.tuning_seconds)
            return None
        if is_continued:
            return self.chosen_
        seed = draw_seed(copy.deepcopy(self.random_state), self.training_options.checkpoint)
        return choose(options, source, self._target_of, seed, self.tuning_seconds)

    def _fitted(self) -> Fitted:
        """What the trees of the last fit share."""
        first: Fitted = self.estimators_[0]._fitted()
        return replace(first, encoder=self.encoder_, target=self.target_, encode=partial(encode, self))

    def _take(self, fitted: FittedForest, earlier: list[Any]) -> None:
        """Keep what a fit has learned, after earlier trees."""
        common = set(self.get_params(deep=False)) & set(self.tree_kind().get_params(deep=False)) - set(OF_EACH)
        trees = []
        for k, learned in enumerate(fitted.trees, len(earlier)):
            kind = fitted.kinds[k % len(fitted.kinds)]
            options = with_training(self.training, {name: getattr(self, name) for name in common} | nested(kind))
            tree = self.tree_kind(**options, random_state=fitted.seeds[k])
            if self.training_options.checkpoint is not None:
                tree.set_params(training__checkpoint=None)
            tree._take(learned)
            trees.append(tree)
        self._set_learned(fitted.table.encoder, fitted.table.target, [*earlier, *trees], fitted.seed)
        self._seen = fitted.seen

    def _set_learned(self, encoder: TableEncoder, target: Any, trees: list[Any], seed: int) -> None:
        self.encoder_, self.target_, self.estimators_, self._seed = encoder, target, trees, seed
        self.n_features_in_ = encoder.n_features_in_
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_

    def _remove_checkpoints(self) -> None:
        """Remove the checkpoints of a run that is over, so that another fit does not resume it."""
        if self.training_options.checkpoint is not None and not self.keeps_checkpoint:
            for checkpoint in forest_checkpoints(self.training_options.checkpoint, self.n_trees):
                for path in checkpoint_files(checkpoint):
                    path.unlink(missing_ok=True)

    def out_of_bag(self, X: Any, y: Any, sample_weight: Any = None) -> Doubles:  # noqa: N803
        """Mean predictions of the rows of `fit`, (n, k), by the trees that have not trained on each row.

        A row that all trees have trained on has NaN. The forest must have been fitted without `eval_set`, by this
        process.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)
            The rows of `fit`, in their order.
        y : array-like of shape (n,) or (n, n_outputs)
            Their classes or values.
        sample_weight : array-like of shape (n,), optional
            Their weights.

        Returns
        -------
        float64 array of shape (n, n_outputs)
        """
        if getattr(self, "_seen", None) is None:
            raise InputValueError("out_of_bag must be called in the process of a fit to a table in memory")
        assert self._seen is not None
        x = encode_training(partial(encode, self), self.encoder_, X, y, sample_weight, self.target_)
        n_trees, total = np.zeros((len(x), 1)), np.zeros((len(x), len(self.target_.output_names(self.encoder_))))
        for tree, seen in zip(self.estimators_, self._seen, strict=True):
            is_out = ~np.unpackbits(seen, count=len(x)).astype(bool)
            total[is_out] += tree_predictions(tree, x[is_out])
            n_trees[is_out] += 1
        return np.where(n_trees > 0, total / np.maximum(n_trees, 1), np.nan)

    def _score_out_of_bag(self, X: Any, y: Any, sample_weight: Any) -> None:  # noqa: N803
        """Set the out-of-bag attributes."""
        predictions = self.out_of_bag(X, y, sample_weight)
        has_some = ~np.isnan(predictions[:, 0])
        if not has_some.all():
            warnings.warn(
                f"{int((~has_some).sum())} rows have no out-of-bag prediction, as all trees have trained on them. "
                "Raise n_trees",
                UserWarning,
                stacklevel=2,
            )
        targets = self.target_.read(y, np.empty((len(predictions), 0), dtype=np.float32))
        self.oob_score_ = self._score(predictions[has_some], targets[has_some])
        self._set_out_of_bag(predictions)

    def _score(self, predictions: Doubles, targets: npt.NDArray[Any]) -> float:
        """The score of mean predictions, (n, k)."""
        raise NotImplementedError

    def _set_out_of_bag(self, predictions: Doubles) -> None:
        """Keep the out-of-bag predictions of all training rows, (n, k)."""
        raise NotImplementedError

    @property
    def feature_importances_(self) -> Doubles:
        """Mean over the trees of how much predictions depend on each column of the table, (n_features_in_,)."""
        shares: Doubles = np.mean([tree.tree_.importances for tree in self.estimators_], axis=0)
        return shares

    @plain_torch()
    def apply(self, X: Any) -> npt.NDArray[np.int64]:  # noqa: N803
        """The node at the end of each row's one path through each kept tree.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        int64 array of shape (n, n_trees)
            Nodes are in heap order: the root is 0, the children of t are 2t+1 (left) and 2t+2 (right).
        """
        check_is_fitted(self)

        def ends(rows: Any) -> npt.NDArray[np.int64]:
            parts = self._encoded(rows)
            return np.concatenate([np.stack([find_ends(tree.tree_, x) for tree in self.estimators_], 1) for x in parts])

        return map_rows(X, ends)

    def _mean_predictions(self, X: Any, *, hard: bool, device: Any = None) -> Doubles:  # noqa: N803
        """Means of probabilities or of values in the units of y over the trees, (n, k)."""
        return self._predictions(X, lambda found: sum(found) / len(self.estimators_), hard=hard, device=device)

    def _all_predictions(self, X: Any, *, hard: bool, device: Any = None) -> Doubles:  # noqa: N803
        """Probabilities or values in the units of y of each tree, (n_trees, n, k)."""
        found = self._predictions(X, lambda found: np.stack(list(found), 1), hard=hard, device=device)
        return np.moveaxis(found, 1, 0)

    @plain_torch()
    def _predictions(
        self,
        X: Any,  # noqa: N803
        joined: Callable[[Iterator[Doubles]], Any],
        *,
        hard: bool,
        device: Any,
    ) -> Doubles:
        """A function of what the trees predict, (n, k) each, with an entry for each row."""
        check_is_fitted(self)
        device, trees = self._device_of(X, device), self.estimators_
        one_path = hard or all(tree.tree_.is_hard for tree in trees)
        if device.type == "cpu" or (one_path and not any(has_network(tree.tree_) for tree in trees)):

            def on_cpu(rows: Any) -> Doubles:
                return np.concatenate([joined(self._of_trees(x, hard=hard)) for x in self._encoded(rows)])

            return map_rows(X, on_cpu)
        placed = [DeviceTree(tree.tree_, device) for tree in trees]

        def on_device(rows: Any) -> Doubles:
            write, shape = rows_to_write(self, rows)
            return through_device(
                write,
                shape,
                lambda x: torch.stack([tree.outputs(x, hard=hard) for tree in placed], 1),
                lambda found: joined(tree.target_.predictions(found[:, k]) for k, tree in enumerate(trees)),
                device=device,
                chunk_rows=min(tree.rows for tree in placed),
            )

        return map_rows(X, on_device, device)

    def _device_of(self, X: Any, asked: Any) -> torch.device:  # noqa: N803
        """The device for predictions of these rows, given the wish of the caller."""
        trees = [tree.tree_ for tree in self.estimators_]
        return prediction_device(
            self.device,
            asked,
            rows=open_source(X).n_rows,
            parameters=sum(tree.n_parameters for tree in trees),
            network=any(map(has_network, trees)),
        )

    def _of_trees(self, x: npt.NDArray[np.float32], *, hard: bool) -> Iterator[Doubles]:
        return (tree_predictions(tree, x, hard=hard) for tree in self.estimators_)

    def _encoded(self, X: Any) -> Iterator[npt.NDArray[np.float32]]:  # noqa: N803
        """The encoded rows; a large array is encoded in chunks that fit in the cache."""
        if not isinstance(X, np.ndarray) or X.ndim != 2 or len(X) <= CHUNK:
            return iter([encode(self, X)])
        return (encode(self, X[begin : begin + CHUNK]) for begin in range(0, len(X), CHUNK))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    _repr_html_inner = html_with_picture
    _repr_mimebundle_ = mimebundle_with_picture

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def tree_predictions(tree: Any, x: npt.NDArray[np.float32], *, hard: bool = False) -> Doubles:
    """Probabilities or values in the units of y, (n, k), that a fitted tree predicts of encoded rows."""
    found: Doubles = tree.target_.predictions(row_outputs(tree.tree_, x, hard=hard))
    return found
