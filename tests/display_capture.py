"""What a call shows in a notebook."""

from IPython.utils.capture import capture_output


def shown(function, *args, **kwargs):
    """Return the one display bundle that a call publishes, as (data, metadata).

    For tests that use the fixture `shell`: outside a shell, texts are printed.
    """
    with capture_output() as captured:
        function(*args, **kwargs)
    assert captured.stdout == ""
    [output] = captured.outputs
    return output.data, output.metadata
