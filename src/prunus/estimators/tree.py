"""What estimators of one tree share: their options, the fit in three steps, and the paths of rows."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from prunus.data import TableEncoder
from prunus.data.source import open_source
from prunus.errors import InputValueError
from prunus.estimators.device_rows import through_device
from prunus.estimators.format import OF_FILES
from prunus.estimators.notebook import html_with_picture, mimebundle_with_picture
from prunus.estimators.options import AUTO, CONSTRAINTS, OF_TRAINING, Auto, refuse_others, with_training
from prunus.estimators.predicting import encode, map_rows, rows_to_write
from prunus.estimators.scikit_learn import BaseEstimator
from prunus.fitting.choosing import CHOSEN, check_tuning_seconds, choose, chooses
from prunus.fitting.devices import prediction_device
from prunus.fitting.finish import finish
from prunus.fitting.options import FitOptions, checkpoint_files
from prunus.fitting.prepare import Data, MakeTarget
from prunus.fitting.rows import check_width
from prunus.fitting.run import Fitted, draw_seed
from prunus.fitting.torch_state import plain_torch
from prunus.fitting.train import train
from prunus.fitting.training_options import TrainingOptions
from prunus.nn import TreeModel
from prunus.training import History
from prunus.tree import Tree
from prunus.tree.paths import path_nodes
from prunus.tree.prediction import (
    DeviceTree,
    find_leaves,
    has_network,
    has_split_network,
    node_outputs,
    row_outputs,
    table_leaves,
)

__all__ = ["ArgminTree"]

Outputs = npt.NDArray[np.float64]

CHUNK = 16_384
"""Number of rows in a chunk: a large array is encoded and predicted in chunks that fit in the cache."""


@dataclass(kw_only=True, repr=False, eq=False)
class ArgminTree(BaseEstimator):
    """A single tree learned by gradient descent; each estimator adds what is to be predicted."""

    depth: Any = 4
    pruning_strength: float = 1.0
    routing: Literal["soft", "hard"] = "soft"
    split: Any = "linear"
    max_split_features: int | None = None
    max_leaf_nodes: int | None = None
    max_leaf_features: int | None = None
    leaf: str = "constant"
    hidden_layer_sizes: Any = (64, 64, 64)
    pieces: Any = 0
    loss: Any = "squared_error"
    max_epochs: int | Auto = AUTO
    training: TrainingOptions | None = None
    device: Any = AUTO
    n_jobs: int | None = None
    random_state: Any = None
    warm_start: bool = False
    verbose: int = 0
    callbacks: Any = None

    encoder_: TableEncoder = field(init=False)
    tree_: Tree = field(init=False)
    target_: Any = field(init=False)
    model_: TreeModel = field(init=False)
    history_: History = field(init=False)
    n_iter_: int = field(init=False)
    best_iteration_: int = field(init=False)
    validation_rows_: npt.NDArray[np.int64] | None = field(init=False)
    chosen_: dict[str, Any] = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: npt.NDArray[np.object_] = field(init=False)
    keeps_checkpoint: ClassVar[bool] = False
    """Whether the checkpoint outlives `fit`: the command line removes it only after the model has been saved."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

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
    def _fit(self, source: Data, make_target: MakeTarget, *, is_update: bool = False) -> Self:
        """Fit in numbered steps. The estimator does not change before the end, so that a fit that fails leaves it.

        A warm start continues from the tree of the last fit, and so does an update, which takes one epoch.
        """
        if is_update:
            self._validate_params()  # scikit-learn leaves this out in `partial_fit` of an estimator that is fitted
        options = self._fit_options()
        if is_update:
            options = replace(options, max_epochs=1, early_stopping_rounds=None)
        before = self._fitted() if self.__sklearn_is_fitted__() and (self.warm_start or is_update) else None
        # 1. Options that are "auto" are chosen.
        chosen = self._choose(options, source, make_target, before)
        if chosen is not None:
            options = replace(options, **{name: chosen[name] for name in (*CHOSEN, "weight_decay")})
        options.check()
        # 2. The table and the targets become arrays, and some rows are held out for validation.
        seed = draw_seed(self.random_state, self.training_options.checkpoint)
        run = source.prepare(options, make_target, seed, before=before, is_new=is_update)
        # 3. A model is trained, and the tree is read from it.
        (fitted,) = finish(train([run]))
        # 4. What was learned is kept, and nothing of an earlier fit that this one does not continue.
        stale = ["chosen_"] if before is not None else ["chosen_", *OF_FILES]
        for name in stale:
            vars(self).pop(name, None)
        self._take(fitted)
        if chosen is not None:
            self.chosen_ = chosen
        if self.training_options.checkpoint is not None and not self.keeps_checkpoint:
            for path in checkpoint_files(self.training_options.checkpoint):
                path.unlink(missing_ok=True)
        return self

    def _fit_options(self) -> FitOptions:
        return FitOptions.of(self)

    def _choose(
        self, options: FitOptions, source: Data, make_target: MakeTarget, before: Fitted | None
    ) -> dict[str, Any] | None:
        """What is best for options that are "auto"; None if none are. A fit that is continued keeps what was chosen."""
        tuning_seconds = getattr(self, "tuning_seconds", None)
        if not chooses(options):
            check_tuning_seconds(tuning_seconds)
            return None
        if before is None:
            seed = draw_seed(
                copy.deepcopy(self.random_state), self.training_options.checkpoint
            )  # the user's own state does not change
            return choose(options, source, make_target, seed, tuning_seconds)
        if not hasattr(self, "chosen_"):
            raise InputValueError(
                "leaf, depth and pieces must be the same as in the last fit to continue it, got 'auto' after a fit "
                "with given options. Set them back, or start again with warm_start=False"
            )
        return self.chosen_

    def _fitted(self) -> Fitted:
        """What the last fit has learned."""
        return Fitted(
            self.encoder_,
            self.target_,
            self.tree_,
            self.model_,
            self.history_,
            self.n_iter_,
            self.best_iteration_,
            encode=partial(encode, self),
        )

    def _take(self, fitted: Fitted) -> None:
        """Keep what a fit has learned."""
        self.encoder_, self.target_, self.tree_, self.model_ = (
            fitted.encoder, fitted.target, fitted.tree, fitted.model
        )  # fmt: skip
        self.history_, self.n_iter_, self.best_iteration_ = fitted.history, fitted.n_iter, fitted.best_iteration
        self.validation_rows_ = fitted.held_out
        self.n_features_in_ = self.encoder_.n_features_in_
        vars(self).pop("feature_names_in_", None)
        if hasattr(self.encoder_, "feature_names_in_"):
            self.feature_names_in_ = self.encoder_.feature_names_in_

    @property
    def node_mass_(self) -> npt.NDArray[np.float32]:
        """How much of a row each node can receive, (2**(depth + 1) - 1,); a node with mass 0 is pruned."""
        return self.tree_.mass

    @property
    def kept_nodes_(self) -> npt.NDArray[np.bool_]:
        """Whether each node belongs to the kept tree, (2**(depth + 1) - 1,), which hard predictions follow."""
        return self.tree_.kept

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """How much the outputs depend on each column of the table, as shares that add up to 1, (n_features_in_,)."""
        return self.tree_.importances

    def apply(self, X: Any) -> npt.NDArray[np.int64]:  # noqa: N803
        """The node at the end of each row's one path through the kept tree.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        int64 array of shape (n,)
            Nodes are in heap order: the root is 0, the children of t are 2t+1 (left) and 2t+2 (right).
        """
        return self._ends(X)

    def decision_path(self, X: Any) -> csr_array:  # noqa: N803
        """The nodes on each row's one path through the kept tree.

        Parameters
        ----------
        X : table of shape (n, n_features_in_)

        Returns
        -------
        sparse bool array of shape (n, 2**(depth + 1) - 1)
        """
        nodes, begins = path_nodes(self._ends(X))
        shape = (len(begins) - 1, self.tree_.n_nodes)
        return csr_array((np.ones(len(nodes), dtype=bool), nodes, begins), shape=shape)

    def get_depth(self) -> int:
        """Depth of the kept tree."""
        check_is_fitted(self)
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Number of leaves of the kept tree."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    def _ends(self, X: Any, device: Any = None) -> npt.NDArray[np.int64]:  # noqa: N803
        """The last kept node, (n,), on each row's one path."""
        check_is_fitted(self)
        device = self._device_of(X, device)
        leaves = map_rows(X, lambda rows: self._leaves(rows, device), device)
        ends: npt.NDArray[np.int64] = self.tree_.ends[leaves]
        return ends

    @plain_torch()
    def _leaves(self, X: Any, device: torch.device) -> npt.NDArray[np.integer]:  # noqa: N803
        """The leaf of the complete tree, (n,), at the end of each row's one path.

        A table of numbers that only have to be scaled is not encoded first. A GPU is of use only if the splits are
        computed by a network.
        """
        check_width(self.encoder_, X, type(self).__name__)
        if device.type != "cpu" and has_split_network(self.tree_):
            return self._on_device(X, device, DeviceTree.leaves)
        scaling, splits = self.encoder_.scaling_of(X), self.tree_.splits
        leaves = None if scaling is None else table_leaves(splits, X, scaling)
        if leaves is None:
            return find_leaves(splits, encode(self, X))
        _check_feature_names(self, X, reset=False)
        return leaves

    @plain_torch()
    def _predict(
        self,
        X: Any,  # noqa: N803
        of_outputs: Callable[[Outputs], npt.NDArray[Any]],
        *,
        hard: bool,
        device: Any = None,
    ) -> npt.NDArray[Any]:
        """A function of the outputs of each row.

        If the outputs depend only on the node that a row ends in, the function is applied to nodes instead of rows.
        """
        check_is_fitted(self)
        device = self._device_of(X, device)
        return map_rows(X, lambda rows: self._predict_rows(rows, of_outputs, hard=hard, device=device), device)

    def _predict_rows(
        self,
        X: Any,  # noqa: N803
        of_outputs: Callable[[Outputs], npt.NDArray[Any]],
        *,
        hard: bool,
        device: torch.device,
    ) -> npt.NDArray[Any]:
        tree = self.tree_
        one_path = hard or tree.is_hard
        if one_path and tree.leaves.is_constant:
            of_leaves = of_outputs(node_outputs(tree))[tree.ends]
            return _take(of_leaves, self._leaves(X, device))
        if device.type == "cpu" or (one_path and not has_network(tree)):
            return of_outputs(self._outputs(X, hard=hard))
        return self._on_device(X, device, lambda placed, x: placed.outputs(x, hard=hard), of_outputs)

    def _outputs(self, X: Any, *, hard: bool) -> Outputs:  # noqa: N803
        """The outputs of rows, (n, k), computed on the CPU."""
        if not isinstance(X, np.ndarray) or X.ndim != 2 or len(X) <= CHUNK:
            return self._encoded_outputs(encode(self, X), hard=hard)
        chunks = (X[begin : begin + CHUNK] for begin in range(0, len(X), CHUNK))
        return np.concatenate([self._encoded_outputs(encode(self, chunk), hard=hard) for chunk in chunks])

    def _on_device(
        self,
        X: Any,  # noqa: N803
        device: torch.device,
        compute: Callable[[DeviceTree, torch.Tensor], torch.Tensor],
        read: Callable[[npt.NDArray[Any]], npt.NDArray[Any]] = lambda computed: computed,
    ) -> npt.NDArray[Any]:
        """What a device computes for each row, and a function on the CPU then makes of it."""
        placed = DeviceTree(self.tree_, device)
        write, shape = rows_to_write(self, X)
        return through_device(write, shape, lambda x: compute(placed, x), read, device=device, chunk_rows=placed.rows)

    def _device_of(self, X: Any, asked: Any) -> torch.device:  # noqa: N803
        """The device for predictions of these rows, given the wish of the caller."""
        tree = self.tree_
        return prediction_device(
            self.device, asked, rows=open_source(X).n_rows, parameters=tree.n_parameters, network=has_network(tree)
        )

    def _encoded_outputs(self, x: npt.NDArray[np.float32], *, hard: bool) -> Outputs:
        return row_outputs(self.tree_, x, hard=hard)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tree_")

    _repr_html_inner = html_with_picture
    _repr_mimebundle_ = mimebundle_with_picture

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _take(values: npt.NDArray[Any], rows: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
    """``values[rows]``, computed by several threads if the values are numbers."""
    if values.dtype != np.float64:
        return np.take(values, rows, axis=0)
    return torch.from_numpy(values).index_select(0, torch.from_numpy(rows)).numpy()
