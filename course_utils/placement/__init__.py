"""Draw which device holds which piece of an array, on which mesh.

A picture shows an array of any rank, its pieces in colour and each with the numbers of the devices
that hold it, and below it the mesh with its axes named, each device in the colour of its piece: where
two devices have one colour, they hold copies. Colour only repeats what the numbers say.
"""

from course_utils.placement._holding import pieces
from course_utils.placement._show import show_placement

__all__ = ["pieces", "show_placement"]
