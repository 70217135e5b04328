"""Methods of hierarchical clustering that the paper compares with.

Each has ``fit(X)``, without labels, and ``apply(X)``, the nodes in heap order (root 0, children 2t+1 and 2t+2) where
rows end, also rows that it was not fitted to. X is a matrix of numbers whose columns are of similar size.
"""

from benchmarks.harness.clusterers.birch import BirchTree
from benchmarks.harness.clusterers.ghhc import GHHC
from benchmarks.harness.clusterers.hkmeans import HKMeans

__all__ = ["GHHC", "BirchTree", "HKMeans"]
