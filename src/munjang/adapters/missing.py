"""A library that an adapter is for and that is not installed → an error that names the package to install.

Which package goes with which adapter is said by the adapter.
"""

from __future__ import annotations

from munjang.errors import UsageError


class MissingPackage(UsageError, ImportError):
    """An adapter's own library is not installed; also an ImportError, so that who asks with try and except hears no."""

    http_status = 501


def make_missing_error(library: str, package: str, error: ImportError) -> ImportError:
    """Return what to raise when `import library` failed: a hint to install `package`, or the error itself when something else is broken."""
    absent = (error.name or "").partition(".")[0]
    if absent != library.partition(".")[0]:
        return error
    return MissingPackage(f"this adapter needs {package}, which is not installed\n  pip install {package}", name=error.name)
