"""Hard trees, in which every row follows one path: a tree learns to imitate a soft one while its margins shrink."""

from prunus.hardening.hard_tree import (
    Hardening,
    HardTree,
    HardTreeOptions,
    Student,
    begin_hardening,
    finish_hardening,
    read_hard_tree,
)

__all__ = [
    "HardTree",
    "HardTreeOptions",
    "Hardening",
    "Student",
    "begin_hardening",
    "finish_hardening",
    "read_hard_tree",
]
