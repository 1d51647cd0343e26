"""Right parallel steps in many styles: none is refused."""

import pytest
from equivalence_case import DEVICES
from equivalence_table import RIGHT, compare


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.name)
def test_a_right_step_passes(case, devices):
    found = compare(case, devices)
    assert not found.caught, found.said


def test_there_are_styles_enough():
    assert len({case.name for case in RIGHT}) >= 10


def test_a_gradient_that_is_nothing_but_rounding_is_unproved_and_no_difference():
    """A bias before batch normalisation, of which Adam makes full steps."""
    case = next(case for case in RIGHT if "nnx.jit" in case.name)
    said = compare(case, 4).said
    assert "state[0].first.bias.value" in said.split("nothing is proved about")[1]
    assert "unproved: its update is nothing but rounding" in said
