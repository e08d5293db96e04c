# No resource of the app gives access to somebody outside of the customer's account: no role by its trust policy, and no bucket,
# queue, topic, key, secret, function or registry by its own policy.
#
# A value that the plan does not know yet cannot be judged here. The runner judges the trust of each role again when the role is
# made.
package freehold

deny contains msg if {
	some resource in changed
	not resource.type in narrowing
	some found in documents(resource.change.after)
	some statement in as_list(found.document.Statement)
	statement.Effect == "Allow"
	some stranger in strangers_of(statement)
	msg := sprintf("%s: `%s` gives access to `%s`, which is outside of the account", [resource.address, found.attribute, stranger])
}

# An identity provider decides who its users are, and all of them get access.
deny contains msg if {
	some resource in changed
	resource.type == "aws_iam_openid_connect_provider"
	not is_of_cluster(resource.change.after.url)
	msg := sprintf("%s: it gives access to all identities of the identity provider `%s`, which is outside of the account", [resource.address, resource.change.after.url])
}

deny contains msg if {
	some resource in changed
	resource.type in {"aws_iam_saml_provider", "aws_rolesanywhere_trust_anchor"}
	msg := sprintf("%s: it gives access to all identities of an identity provider outside of the account", [resource.address])
}

deny contains msg if {
	some resource in changed
	some attribute in shared_with[resource.type]
	some stranger in as_list(resource.change.after[attribute])
	is_outside(stranger)
	msg := sprintf("%s: it is shared with `%s`, which is outside of the account", [resource.address, stranger])
}

warn contains msg if {
	some resource in changed
	resource.type == "aws_iam_role"
	resource.change.after_unknown.assume_role_policy == true
	msg := sprintf("%s: its trust policy is known only when the role is made; the runner checks it then", [resource.address])
}

warn contains msg if {
	some resource in changed
	some attribute in with_policy[resource.type]
	resource.change.after_unknown[attribute] == true
	msg := sprintf("%s: its `%s` is known only when the resource is made, so the policy cannot check who gets access by it", [resource.address, attribute])
}

warn contains msg if {
	some resource in changed
	resource.type == "aws_iam_openid_connect_provider"
	is_of_cluster(resource.change.after.url)
	msg := sprintf("%s: it gives access to the pods of a cluster; the address does not show in which account the cluster is", [resource.address])
}

# The policy of a VPC endpoint only restricts the requests through the endpoint. It gives access to nobody.
narrowing := {"aws_vpc_endpoint", "aws_vpc_endpoint_policy"}

# Attributes that say who may use a resource.
with_policy := {
	"aws_s3_bucket_policy": {"policy"},
	"aws_sqs_queue": {"policy"},
	"aws_sqs_queue_policy": {"policy"},
	"aws_sns_topic": {"policy"},
	"aws_sns_topic_policy": {"policy"},
	"aws_kms_key": {"policy"},
	"aws_kms_key_policy": {"policy"},
	"aws_secretsmanager_secret": {"policy"},
	"aws_secretsmanager_secret_policy": {"policy"},
	"aws_ecr_repository_policy": {"policy"},
	"aws_efs_file_system_policy": {"policy"},
	"aws_cloudwatch_event_bus_policy": {"policy"},
	"aws_backup_vault_policy": {"policy"},
	"aws_opensearch_domain": {"access_policies"},
	"aws_opensearch_domain_policy": {"access_policies"},
}

# Attributes that name an account or a principal with whom a resource is shared.
shared_with := {
	"aws_lambda_permission": {"principal"},
	"aws_lambda_layer_version_permission": {"principal"},
	"aws_ami_launch_permission": {"account_id"},
	"aws_ram_principal_association": {"principal"},
	"aws_vpc_endpoint_service": {"allowed_principals"},
	"aws_vpc_endpoint_service_allowed_principal": {"principal_arn"},
	"aws_snapshot_create_volume_permission": {"account_id"},
	"aws_db_snapshot": {"shared_accounts"},
	"aws_kms_grant": {"grantee_principal"},
	"aws_cloudwatch_event_permission": {"principal"},
	"aws_vpc_peering_connection": {"peer_owner_id"},
}

changed contains resource if {
	some resource in input.plan.resource_changes
	some action in resource.change.actions
	action in {"create", "update"}
}

# Documents of policies at any depth of a resource's attributes, as objects or as texts.
documents(after) := {found |
	walk(after, [path, value])
	is_string(value)
	contains(value, "Statement")
	json.is_valid(value)
	found := {"attribute": path[0], "document": json.unmarshal(value)}
} | {found |
	walk(after, [path, value])
	is_object(value)
	value.Statement
	found := {"attribute": path[0], "document": value}
}

# The principals of a statement that are outside of the account. `*` does not count if a condition limits the statement to the
# account.
strangers_of(statement) := {name |
	some name in principals(statement)
	is_outside(name)
	not everybody_inside(name, statement)
}

everybody_inside(name, statement) if {
	name == "*"
	is_limited(statement)
}

principals(statement) := {"*"} if {
	statement.Principal == "*"
} else := {"everybody except NotPrincipal"} if {
	statement.NotPrincipal
} else := {name |
	some kind in ["AWS", "Federated", "CanonicalUser"]
	some name in as_list(statement.Principal[kind])
}

# Operators that permit only what a condition lists. An operator that negates, or that permits a request without the key, limits
# nothing.
listing := {"stringequals", "stringequalsignorecase", "stringlike", "arnequals", "arnlike"}

# Condition keys for the account of the caller, or the account for which a service calls.
of_account := {"aws:principalaccount", "aws:sourceaccount", "aws:sourceowner", "kms:calleraccount"}

of_arn := {"aws:principalarn", "aws:sourcearn"}

is_limited(statement) if {
	some operator, keys in statement.Condition
	lower(operator) in listing
	some key, values in keys
	is_inside(lower(key), values)
}

is_inside(key, values) if {
	key in of_account
	every value in as_list(values) {
		value == input.freehold.account
	}
	count(as_list(values)) > 0
}

is_inside(key, values) if {
	key in of_arn
	every value in as_list(values) {
		split(value, ":")[4] == input.freehold.account
	}
	count(as_list(values)) > 0
}

is_of_cluster(url) if regex.match(`^(https://)?oidc\.eks\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/id/[0-9A-F]+$`, url)

is_outside(name) if name == "*"

# Canonical users, identity providers of the internet, and all other principals whose names do not show their account.
is_outside(name) if {
	not regex.match(`^[0-9]{12}$`, name)
	not startswith(name, "arn:")
	name != "*"
	not is_service(name)
}

# Services of AWS. Cognito counts as a service too: the condition of such a trust names the pool, and the runner judges the role.
is_service(name) if regex.match(`^[a-z0-9.-]+\.amazonaws\.com(\.cn)?$`, name)

is_outside(name) if {
	regex.match(`^[0-9]{12}$`, name)
	not is_known(name)
}

is_outside(name) if {
	startswith(name, "arn:")
	account := split(name, ":")[4]
	account != ""
	not is_known(account)
}

is_known(account) if account == input.freehold.account

# The identities of Amazon CloudFront.
is_known(account) if account == "cloudfront"

is_known(account) if account in log_writers

# The accounts of AWS that write access logs of load balancers into a bucket, one for each region that is older than 2022.
log_writers := {
	"127311923021", "033677994240", "027434742980", "797873946194", "098369216593", "754344448648", "589379963580",
	"718504428378", "383597477331", "600734575887", "114774131450", "783225319266", "582318560864", "985666609251",
	"054676820928", "156460612806", "652711504416", "635631232127", "009996457667", "897822967062", "076674570225",
	"507241528517",
}

as_list(value) := value if {
	is_array(value)
} else := [value]
