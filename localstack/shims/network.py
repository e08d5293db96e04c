"""CloudFormation: addresses and NAT gateways, whose resource types MiniStack's EC2 has and its CloudFormation lacks."""

import sys

from ministack.services import ec2
from ministack.services.cloudformation import provisioners


def apply():
    handlers = getattr(provisioners, "_RESOURCE_HANDLERS", {})
    wanted = ("_allocate_address", "_release_address", "_create_nat_gateway", "_addresses", "_nat_gateways")
    if "AWS::EC2::VPC" not in handlers or not all(hasattr(ec2, name) for name in wanted):
        sys.exit("shim: EC2's addresses or NAT gateways are gone; was MiniStack upgraded?")
    for kind, parts in (
        ("AWS::EC2::EIP", {"create": _create_address, "update": _keep_address, "delete": _delete_address}),
        ("AWS::EC2::NatGateway", {"create": _create_nat, "update": _keep_nat, "delete": _delete_nat}),
    ):
        handlers.setdefault(kind, parts)


def _made(store, create, parameters, props):
    """Makes one record by EC2's own call, and returns its id."""
    before = set(store)
    create(parameters)
    [made] = set(store) - before
    ec2._tags[made] = [dict(tag) for tag in props.get("Tags", [])]
    return made


def _create_address(logical_id, props, stack_name):
    made = _made(ec2._addresses, ec2._allocate_address, {"Domain": [props.get("Domain", "vpc")]}, props)
    address = ec2._addresses[made]["PublicIp"]
    return address, {"AllocationId": made, "PublicIp": address}


def _keep_address(physical_id, old, new, stack_name):
    return physical_id, {"AllocationId": _allocation(physical_id), "PublicIp": physical_id}


def _delete_address(physical_id, props):
    ec2._addresses.pop(_allocation(physical_id), None)


def _allocation(address):
    return next((made for made, one in ec2._addresses.items() if one["PublicIp"] == address), "")


def _create_nat(logical_id, props, stack_name):
    parameters = {name: [props[name]] for name in ("SubnetId", "AllocationId") if name in props}
    made = _made(ec2._nat_gateways, ec2._create_nat_gateway, parameters, props)
    return made, {"NatGatewayId": made}


def _keep_nat(physical_id, old, new, stack_name):
    return physical_id, {"NatGatewayId": physical_id}


def _delete_nat(physical_id, props):
    ec2._nat_gateways.pop(physical_id, None)
