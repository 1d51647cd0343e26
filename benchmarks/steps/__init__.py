"""Ways to train the same network: each a class made with (problem, rule, rows).

`rule` is "adamw", which is timed, or "sgd", which is compared. `epoch()` trains over all of
`rows`, int32 (steps, batch), and returns when the work is done; `parameters()` returns a pair
(W (n, m), b (m,)) of NumPy arrays for each layer. Every way keeps the loss and the accuracy of each step.
"""
