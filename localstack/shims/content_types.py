"""Answers: finds the Content-Type of a service's answers at the head of its model and does not read the rest."""

import functools
import gzip
import json
from pathlib import Path
from types import SimpleNamespace

import botocore
from ministack.core import responses

from shims.replace import replace

MODELS = Path(botocore.__file__).parent / "data"
# The metadata come first, in a few hundred bytes of up to 500,000.
HEAD_BYTES = 8192


def apply():
    # MiniStack asks botocore's model of a service for its protocol, so each process parses whole models.
    replace(responses, "_service_model", _with_metadata_only)


def _with_metadata_only(original):
    @functools.cache
    def service_model(service):
        metadata = metadata_of(responses._BOTOCORE_NAME.get(service, service))
        return SimpleNamespace(metadata=metadata) if metadata else original(service)

    return service_model


def metadata_of(name):
    """Returns the metadata of the newest model of a service; `None` when they are not found at its head."""
    for path in sorted(MODELS.glob(f"{name}/*/service-2.json.gz"))[-1:]:
        with gzip.open(path) as file:
            _, key, rest = file.read(HEAD_BYTES).decode(errors="replace").partition('"metadata":')
        try:
            return json.JSONDecoder().raw_decode(rest.lstrip())[0] if key else None
        except ValueError:
            return None
    return None
