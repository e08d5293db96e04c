"""The bucket from which customers' machines download programs: the vendor has it before the guides begin."""

from programs import REGION, VENDOR, Failed, Programs

BUCKET = "downloads.acme.example"
# What the guides put there.
PUBLISHED = {"freehold-runner", "freehold-builder"}


def make_bucket(endpoint):
    place = {"LocationConstraint": REGION}
    _s3(endpoint).create_bucket(Bucket=BUCKET, CreateBucketConfiguration=place)


def remove_bucket(endpoint):
    """Removes the bucket, and fails when the guides have not put the programs there."""
    s3 = _s3(endpoint)
    found = {one["Key"] for one in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])}
    if found != PUBLISHED:
        raise Failed(f"the guides published {sorted(found)} instead of {sorted(PUBLISHED)}")
    for key in found:
        s3.delete_object(Bucket=BUCKET, Key=key)
    s3.delete_bucket(Bucket=BUCKET)


def _s3(endpoint):
    programs = Programs()
    programs.endpoint = endpoint
    return programs.client("s3", VENDOR)
