"""Where the programs of a cluster are, and why they are not there."""

import os
import subprocess
from pathlib import Path

BUILD = Path(__file__).with_name("build")


def folder():
    """Returns the folder that `FREEHOLD_KUBERNETES` names, or the one that `build` fills for the user."""
    named = os.environ.get("FREEHOLD_KUBERNETES")
    return named or subprocess.run([BUILD, "--where"], check=True, capture_output=True, text=True).stdout.strip()


def missing():
    """Returns why there are no clusters on this machine, or nothing when there are."""
    found = Path(folder())
    return None if (found / "kube-apiserver").exists() else f"no `{found}`; run `localstack/kubernetes/build`"
