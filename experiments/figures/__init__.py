"""The figures of the paper, drawn again; ``python -m experiments.figures`` makes them, `table` lists them."""
