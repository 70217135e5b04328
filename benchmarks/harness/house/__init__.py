"""How large and how tangled the repository is, in figures that a rebuild is judged by, before and after."""
