"""Hard trees, in which every row follows one path: a tree learns to imitate a soft one while its margins shrink."""

from prunus.hardening.hard_tree import HardTree, Wish, harden, read_hard_tree

__all__ = ["HardTree", "Wish", "harden", "read_hard_tree"]
