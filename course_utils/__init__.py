"""Instruments for a course on training with JAX on one and many GPUs.

Each module has one idea: import the one you need, for example
`from course_utils.timing import measure`. Importing any of them starts no JAX backend.
"""
