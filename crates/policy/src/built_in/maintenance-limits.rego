# What the customer permits in mode `maintenance`: whether something new may be made, and which components may be changed.
package freehold

deny contains msg if {
	input.freehold.mode == "maintenance"
	not input.freehold.maintenance.creates
	some resource in input.plan.resource_changes
	"create" in resource.change.actions
	not "delete" in resource.change.actions
	msg := sprintf("%s: it would be created, and the customer permits no creation in mode `maintenance`", [resource.address])
}

deny contains msg if {
	input.freehold.mode == "maintenance"
	not input.freehold.maintenance.creates
	input.review.operation == "CREATE"
	msg := sprintf(
		"%s %s: it would be created, and the customer permits no creation in mode `maintenance`",
		[input.review.kind.kind, input.review.name],
	)
}

deny contains msg if {
	input.freehold.mode == "maintenance"
	permitted := input.freehold.maintenance.components
	count(permitted) > 0
	not input.freehold.component in permitted
	msg := sprintf("component `%s` is not one that the customer permits in mode `maintenance`", [input.freehold.component])
}
