# No resource of the app lets somebody in who is outside of the customer's account: roles by their trust, and buckets, queues,
# topics, keys, secrets, functions and registries by their own policy.
#
# A value that the plan does not know yet cannot be judged here. The runner judges the trust of each role again when it is made.
package freehold

deny contains msg if {
	some resource in changed
	some attribute, text in resource.change.after
	is_string(text)
	json.is_valid(text)
	document := json.unmarshal(text)
	some statement in as_list(document.Statement)
	statement.Effect == "Allow"
	some stranger in strangers_of(statement)
	msg := sprintf("%s: `%s` lets `%s` in, who is outside of the account", [resource.address, attribute, stranger])
}

deny contains msg if {
	some resource in changed
	some attribute in shared_with[resource.type]
	some stranger in as_list(resource.change.after[attribute])
	is_outside(stranger)
	msg := sprintf("%s: it is shared with `%s`, who is outside of the account", [resource.address, stranger])
}

warn contains msg if {
	some resource in changed
	resource.type == "aws_iam_role"
	resource.change.after_unknown.assume_role_policy == true
	msg := sprintf("%s: its trust is not known before it is made; the runner judges it then", [resource.address])
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

# The principals of a statement that are outside. A statement for everybody is for those inside only if its condition says so.
strangers_of(statement) := {name |
	some name in aws_principals(statement)
	is_outside(name)
	not everybody_inside(name, statement)
}

everybody_inside(name, statement) if {
	name == "*"
	limited(statement)
}

aws_principals(statement) := {"*"} if {
	statement.Principal == "*"
} else := {name | some name in as_list(statement.Principal.AWS)}

# Condition keys that limit who calls, or in whose name.
limiting := {
	"aws:principalaccount",
	"aws:principalarn",
	"aws:principalorgid",
	"aws:principalorgpaths",
	"aws:sourceaccount",
	"aws:sourcearn",
	"aws:sourceowner",
	"aws:sourceorgid",
	"aws:sourcevpc",
	"aws:sourcevpce",
	"kms:calleraccount",
}

limited(statement) if {
	some _, keys in statement.Condition
	some key, _ in keys
	lower(key) in limiting
}

is_outside(name) if name == "*"

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
