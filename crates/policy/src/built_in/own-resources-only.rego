# The app changes no resource of another install, and takes no resource of the customer's into its state.
package freehold

# Two tenants may each have an install of the same name in one account.
deny contains msg if {
	some resource in input.plan.resource_changes
	changes_existing(resource)
	some kind in ["install", "tenant"]
	key := sprintf("freehold:%s", [kind])
	has := tags(resource.change.before)
	owner := has[key]
	owner != input.freehold[kind]
	msg := sprintf("%s: it belongs to %s `%s`", [resource.address, kind, owner])
}

deny contains msg if {
	some resource in input.plan.resource_changes
	resource.change.importing
	not is_own(tags(resource.change.before))
	msg := sprintf("%s: it exists and does not belong to this install, and an `import` block takes it over", [resource.address])
}

changes_existing(resource) if {
	some action in resource.change.actions
	action in {"update", "delete"}
}

# Without a tag of the tenant, the name of the install decides alone.
is_own(has) if {
	has["freehold:install"] == input.freehold.install
	object.get(has, "freehold:tenant", input.freehold.tenant) == input.freehold.tenant
}

# Tags of a resource, as the provider of AWS shows them: `tags` of the resource itself, and `tags_all` with the provider's tags
# too.
tags(before) := object.union(map(before, "tags"), map(before, "tags_all"))

map(before, key) := before[key] if {
	is_object(before[key])
} else := {}
