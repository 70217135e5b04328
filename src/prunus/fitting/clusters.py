"""What is different about clusters: which nodes are kept, and trees that are searched instead of trained."""

import numpy as np
import numpy.typing as npt
import torch

from prunus.fitting.cluster_start import model_inputs
from prunus.fitting.hierarchy import merge_closest, read_hierarchy
from prunus.fitting.train import Trained
from prunus.hardening import HardTree
from prunus.hardening.searched import TreeSize, search_clusters
from prunus.nn import TreeModel
from prunus.nn.checks import check_depth
from prunus.targets import Columns
from prunus.training import Samples
from prunus.training.many import n_threads
from prunus.tree.paths import last_kept
from prunus.tree.reading import Prune, best_pruning, keep_pairs

__all__ = ["cluster_pruning", "search_tree"]


def search_tree(trained: Trained, fewest_rows: float) -> HardTree:
    """The tree whose leaves are clusters of rows near each other, told apart by rules of one or two columns."""
    run, options, target = trained.run, trained.run.options, trained.run.target
    assert isinstance(target, Columns)
    parts = [part.to("cpu") for part in (trained.train.in_memory, trained.valid) if part is not None]
    x, y = (torch.cat([getattr(part, name) for part in parts]) for name in ("x", "y"))
    weight = torch.cat([torch.ones(len(part)) if part.weight is None else part.weight for part in parts])
    columns = np.arange(x.shape[1])
    limits = [most for most in (options.max_leaf_nodes, options.n_clusters) if most is not None]
    return search_clusters(
        x.numpy(),
        columns if target.positions is None else np.setdiff1d(columns, target.positions),
        target.wanted(y).astype(np.float64),
        weight.double().numpy(),
        TreeSize(int(options.max_split_features or 1), check_depth(options.depth), min(limits, default=None)),
        least=max(1.0, fewest_rows),
        threads=n_threads(options.n_jobs) or torch.get_num_threads(),
        seed=run.seed,
    )


def cluster_pruning(model: TreeModel, train: Samples, lam: float, most: int | None) -> Prune:
    """Keeps siblings together, so that every row ends in a leaf, and at most this many leaves."""
    x = train.x.numpy()
    weight = np.ones(len(x)) if train.weight is None else train.weight.double().numpy()

    def prune(total: npt.NDArray[np.float64], leaf: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        kept = keep_pairs(best_pruning(total, lam), total)
        n_leaves = (int(kept.sum()) + 1) // 2  # every inner node has two children
        if most is None or n_leaves <= most:
            return kept
        hierarchy = read_hierarchy(kept, model_inputs(model, x), last_kept(kept)[leaf], weight)
        return merge_closest(kept, hierarchy, most)

    return prune
