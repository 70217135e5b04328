"""The figures of the paper, drawn again; `making` lists and makes them."""
