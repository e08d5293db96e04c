"""Packs a script as the code of a Lambda function with a runtime of its own."""

import io
import zipfile


def packed(script):
    """Returns a zip in which `script` is the executable `bootstrap`."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        entry = zipfile.ZipInfo("bootstrap")
        entry.external_attr = 0o755 << 16
        file.writestr(entry, script)
    return archive.getvalue()
