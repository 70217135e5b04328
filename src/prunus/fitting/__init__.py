"""A fit in three steps over plain records: a source prepares a `Run`, `train` trains its model, `finish` ends it.

Forests, candidates for options that are "auto", and hard trees give lists of runs to the same steps.
"""
