# The app changes no resource of another install, and takes no resource of the customer's into its state.
package freehold

deny contains msg if {
	some resource in input.plan.resource_changes
	changes_existing(resource)
	owner := tags(resource.change.before)["freehold:install"]
	owner != input.freehold.install
	msg := sprintf("%s: it belongs to install `%s`", [resource.address, owner])
}

deny contains msg if {
	some resource in input.plan.resource_changes
	resource.change.importing
	not tags(resource.change.before)["freehold:install"] == input.freehold.install
	msg := sprintf("%s: it exists and does not belong to this install, and an `import` block takes it over", [resource.address])
}

changes_existing(resource) if {
	some action in resource.change.actions
	action in {"update", "delete"}
}

# Tags of a resource, as the provider of AWS shows them: `tags` of the resource itself, and `tags_all` with the provider's tags
# too.
tags(before) := object.union(map(before, "tags"), map(before, "tags_all"))

map(before, key) := before[key] if {
	is_object(before[key])
} else := {}
