"""Methods of a fitted forest: means of what its trees predict."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted

from prunus.data import FileTable, TableEncoder
from prunus.estimators.device_rows import through_device
from prunus.estimators.devices import prediction_device
from prunus.estimators.file_predictions import by_chunks, parts_of
from prunus.estimators.fitted import CHUNK, count_rows, encode, rows_to_write
from prunus.estimators.torch_state import plain_torch
from prunus.tree.prediction import DeviceTree, find_ends, has_network, row_outputs

__all__ = ["FittedForest", "tree_predictions"]

Doubles = npt.NDArray[np.float64]


class FittedForest:
    """The part of a forest that needs only what was learned: an encoder, a target and trees that share them."""

    encoder_: TableEncoder
    target_: Any
    estimators_: list[Any]
    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    device: Any

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
        chunks = self._encoded(X)
        return np.concatenate([np.stack([find_ends(tree.tree_, x) for tree in self.estimators_], 1) for x in chunks])

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
            return np.concatenate([joined(self._of_trees(x, hard=hard)) for x in self._encoded(X)])
        if isinstance(X, FileTable):
            return by_chunks(X, lambda rows: self._predictions(rows, joined, hard=hard, device=device), device)
        placed = [DeviceTree(tree.tree_, device) for tree in trees]
        write, shape = rows_to_write(self, X)
        return through_device(
            write,
            shape,
            lambda x: torch.stack([tree.outputs(x, hard=hard) for tree in placed], 1),
            lambda found: joined(tree.target_.predictions(found[:, k]) for k, tree in enumerate(trees)),
            device=device,
            chunk_rows=min(tree.rows for tree in placed),
        )

    def _device_of(self, X: Any, asked: Any) -> torch.device:  # noqa: N803
        """The device for predictions of these rows, given the wish of the caller."""
        trees = [tree.tree_ for tree in self.estimators_]
        return prediction_device(
            self.device,
            asked,
            rows=count_rows(X),
            parameters=sum(tree.n_parameters for tree in trees),
            network=any(map(has_network, trees)),
        )

    def _of_trees(self, x: npt.NDArray[np.float32], *, hard: bool) -> Iterator[Doubles]:
        return (tree_predictions(tree, x, hard=hard) for tree in self.estimators_)

    def _encoded(self, X: Any) -> Iterator[npt.NDArray[np.float32]]:  # noqa: N803
        """The encoded rows; a large array is encoded in chunks that fit in the cache."""
        check_is_fitted(self)
        if isinstance(X, FileTable):
            return self._encoded_files(X)
        if not isinstance(X, np.ndarray) or X.ndim != 2 or len(X) <= CHUNK:
            return iter([encode(self, X)])
        return (encode(self, X[begin : begin + CHUNK]) for begin in range(0, len(X), CHUNK))

    def _encoded_files(self, table: FileTable) -> Iterator[npt.NDArray[np.float32]]:
        for chunk in table.batches():
            with chunk.errors():
                yield from (encode(self, part) for part in parts_of(chunk))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")


def tree_predictions(tree: Any, x: npt.NDArray[np.float32], *, hard: bool = False) -> Doubles:
    """Probabilities or values in the units of y, (n, k), that a fitted tree predicts of encoded rows."""
    found: Doubles = tree.target_.predictions(row_outputs(tree.tree_, x, hard=hard))
    return found
