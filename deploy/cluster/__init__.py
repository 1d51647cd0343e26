"""The cluster commands behind `make cluster-up` and the others, on the standard library alone.

Each says what it will do, asks before it costs or deletes (YES=1 answers), and stops at the first
error with what to do about it. Each can be given again.
"""
