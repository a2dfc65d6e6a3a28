"""Every test here may hand over figures, and ask for a writer by name."""

from tests.trust.figures import figures as figures
from tests.trust.table import writers as writers
