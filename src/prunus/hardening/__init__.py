"""Hard trees, in which every row follows one path: a tree learns to imitate a soft one while its margins shrink."""

from prunus.hardening.hard_tree import HardTree, HardTreeOptions, harden, read_hard_tree

__all__ = ["HardTree", "HardTreeOptions", "harden", "read_hard_tree"]
