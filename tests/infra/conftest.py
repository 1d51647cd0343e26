"""The commands and the pod's programs are imported from where they lie."""

import sys

from infra_tools import REPOSITORY

sys.path.insert(0, str(REPOSITORY))
