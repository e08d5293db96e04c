"""Replaces a function of MiniStack; fails when the function does not exist."""

import sys


def replace(module, name, make):
    """Sets `module.name` to `make(original)`."""
    original = getattr(module, name, None)
    if not callable(original):
        sys.exit(f"shim: `{module.__name__}.{name}` is gone; was MiniStack upgraded?")
    setattr(module, name, make(original))
