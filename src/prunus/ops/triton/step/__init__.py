"""Kernels of a training step, for several trees of one shape at once.

Scores, rewards of nodes and gradients of routes are stored node by node, (trees, nodes, samples), since one program
solves one node. All else is stored sample by sample, (trees, samples, columns), so that products of matrices can sum
over parts of the samples.
"""

from prunus.ops.triton.step.batches import Numbers, gather
from prunus.ops.triton.step.masses import constant_grads, mass_grads, roots
from prunus.ops.triton.step.outputs import blocks_of, compare, elu_, elu_grads_, node_grads, node_outputs
from prunus.ops.triton.step.routes import constant_outputs, rewards, score_grads, write_routes
from prunus.ops.triton.step.updates import adam, add_parts, norm_blocks

__all__ = [
    "Numbers",
    "adam",
    "add_parts",
    "blocks_of",
    "compare",
    "constant_grads",
    "constant_outputs",
    "elu_",
    "elu_grads_",
    "gather",
    "mass_grads",
    "node_grads",
    "node_outputs",
    "norm_blocks",
    "rewards",
    "roots",
    "score_grads",
    "write_routes",
]
