"""The figures of the paper, drawn again; `table` lists them, `making` makes one."""
