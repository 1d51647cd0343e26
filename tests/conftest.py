"""What every test shares: eight simulated CPU devices, and warnings that are errors in kernels."""

import os

# Before any test imports JAX: unit tests run on simulated devices, wherever they run.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
