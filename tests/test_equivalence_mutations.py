"""Wrong parallel steps, as people write them: each is caught, and the report names its cause.

`python tests/equivalence_table.py` prints these as a table, with what is said about each.
"""

import pytest
from equivalence_case import DEVICES
from equivalence_table import WRONG, compare

LEAST = 20 / 25  # of the causes; each line of the table that names its own is held to it besides


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_a_wrong_step_is_caught_and_its_cause_named(case, devices):
    found = compare(case, devices)
    assert found.caught, f"escapes on {devices} devices: {found.said}"
    assert found.expected, f"expected {case.words} in: {found.said}"


@pytest.mark.parametrize("devices", DEVICES)
def test_nearly_all_causes_are_named(devices):
    named = [compare(case, devices).named for case in WRONG if case.words]
    assert sum(named) >= LEAST * len(WRONG)
    assert len(WRONG) >= 25
