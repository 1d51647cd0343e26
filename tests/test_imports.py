"""Importing the instruments costs nothing and starts nothing."""

import pkgutil

from processes import run_python

import course_utils

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(course_utils.__path__, "course_utils.")
    if not module.name.endswith("__main__")
)


def test_the_walk_finds_the_instruments():
    assert {"course_utils.display", "course_utils.timing", "course_utils.headless"} <= set(MODULES)


def test_no_import_starts_the_jax_backend():
    result = run_python(f"""
        import importlib
        for name in {MODULES}:
            importlib.import_module(name)
        import jax
        jax.config.update("jax_num_cpu_devices", 3)  # raises if the backend has started
        assert len(jax.devices()) == 3
    """)
    assert result.returncode == 0, result.stderr


def test_instruments_without_arrays_do_not_import_jax():
    result = run_python("""
        import sys
        import course_utils.checkpoints, course_utils.display
        import course_utils.fashion_mnist, course_utils.headless
        assert "jax" not in sys.modules
    """)
    assert result.returncode == 0, result.stderr


def test_no_instrument_brings_a_library_that_jax_itself_does_not_load():
    """Pallas alone, which jax.extend loads, takes as long to import as all of the course."""
    result = run_python(f"""
        import importlib, sys
        import jax, optax, matplotlib.pyplot
        for name in {[name for name in MODULES if ".headless" not in name]}:
            importlib.import_module(name)
        slow = ("jax.extend", "jax._src.pallas.core", "pandas", "requests", "papermill", "rich")
        assert [name for name in slow if name in sys.modules] == []
    """)
    assert result.returncode == 0, result.stderr
