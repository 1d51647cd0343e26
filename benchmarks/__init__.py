"""The figures that the README quotes, each measured beside its peers: `make bench`.

`__main__` runs the groups one after the other; a group is a handful of variants, each in a process
of its own, which take turns. `crew` starts, asks and ends these processes, `worker` is what runs in
them, `figures` makes medians of what they say, `results`, `tables`, `plot` and `readme` write it down.
"""
