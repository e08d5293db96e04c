# Nothing that holds data, and no port for operators, is open to everybody. A resource that serves the product to the internet,
# such as a load balancer on ports 80 and 443, is permitted with a warning.
package freehold

public_acls := {"public-read", "public-read-write", "authenticated-read"}

web := {80, 443}

changed contains resource if {
	some resource in input.plan.resource_changes
	some action in resource.change.actions
	action in {"create", "update"}
}

deny contains msg if {
	some resource in changed
	resource.type in {"aws_s3_bucket", "aws_s3_bucket_acl", "aws_s3_object"}
	resource.change.after.acl in public_acls
	msg := sprintf("%s: its ACL `%s` makes it public", [resource.address, resource.change.after.acl])
}

deny contains msg if {
	some resource in changed
	resource.type in {"aws_s3_bucket_public_access_block", "aws_s3_account_public_access_block"}
	some key in ["block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets"]
	resource.change.after[key] == false
	msg := sprintf("%s: `%s` is off, so that the bucket can be made public", [resource.address, key])
}

deny contains msg if {
	some resource in changed
	resource.change.after.publicly_accessible == true
	msg := sprintf("%s: it has a public address (`publicly_accessible`)", [resource.address])
}

deny contains msg if {
	some resource in changed
	resource.change.after.group == "all"
	resource.type in {"aws_ami_launch_permission", "aws_snapshot_create_volume_permission"}
	msg := sprintf("%s: everybody may use it", [resource.address])
}

deny contains msg if {
	some open in open_ports
	not is_web(open)
	msg := sprintf("%s: everybody may connect to ports %v to %v", [open.address, open.from, open.to])
}

warn contains msg if {
	some open in open_ports
	is_web(open)
	msg := sprintf("%s: everybody may connect to port %v", [open.address, open.from])
}

warn contains msg if {
	some resource in changed
	resource.type in {"aws_lb", "aws_alb", "aws_elb"}
	resource.change.after.internal == false
	msg := sprintf("%s: the load balancer has a public address", [resource.address])
}

warn contains msg if {
	some resource in changed
	resource.type == "aws_lambda_function_url"
	resource.change.after.authorization_type == "NONE"
	msg := sprintf("%s: everybody may call the function", [resource.address])
}

warn contains msg if {
	some resource in changed
	resource.type == "aws_eks_cluster"
	some network in resource.change.after.vpc_config
	network.endpoint_public_access == true
	msg := sprintf("%s: the API of the cluster has a public address", [resource.address])
}

warn contains msg if {
	input.review.kind.kind == "Service"
	input.review.operation != "DELETE"
	input.review.object.spec.type == "LoadBalancer"
	not is_internal
	msg := sprintf("Service %s: the load balancer may have a public address", [input.review.name])
}

is_internal if input.review.object.metadata.annotations["service.beta.kubernetes.io/aws-load-balancer-scheme"] == "internal"

is_internal if input.review.object.metadata.annotations["service.beta.kubernetes.io/aws-load-balancer-internal"] == "true"

# Rules of security groups for everybody, in each of the forms that they have.
open_ports contains {"address": resource.address, "from": rule.from_port, "to": rule.to_port, "protocol": rule.protocol} if {
	some resource in changed
	resource.type in {"aws_security_group", "aws_default_security_group"}
	some rule in resource.change.after.ingress
	is_for_everybody(rule)
}

open_ports contains {"address": resource.address, "from": rule.from_port, "to": rule.to_port, "protocol": rule.protocol} if {
	some resource in changed
	resource.type == "aws_security_group_rule"
	rule := resource.change.after
	rule.type == "ingress"
	is_for_everybody(rule)
}

open_ports contains {
	"address": resource.address,
	"from": object.get(rule, "from_port", 0),
	"to": object.get(rule, "to_port", 65535),
	"protocol": rule.ip_protocol,
} if {
	some resource in changed
	resource.type == "aws_vpc_security_group_ingress_rule"
	rule := resource.change.after
	some key in ["cidr_ipv4", "cidr_ipv6"]
	is_everybody(rule[key])
}

is_for_everybody(rule) if {
	some key in ["cidr_blocks", "ipv6_cidr_blocks"]
	some range in rule[key]
	is_everybody(range)
}

# An IPv4 range larger than /8 or an IPv6 range larger than /19 counts as everybody: two such ranges can be the whole internet.
is_everybody(range) if {
	not contains(range, ":")
	to_number(split(range, "/")[1]) < 8
}

is_everybody(range) if {
	contains(range, ":")
	to_number(split(range, "/")[1]) < 19
}

is_web(open) if {
	open.from == open.to
	open.from in web
	open.protocol != "-1"
}
