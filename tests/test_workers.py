"""How the suite is spread over workers."""

import pytest


def test_a_file_stays_on_one_worker(request):
    # xdist writes the group of a test into its id, if the mark was there in time.
    if not hasattr(request.config, "workerinput"):
        pytest.skip("not run by several workers")
    assert request.node.nodeid.endswith(f"@{request.path}")
