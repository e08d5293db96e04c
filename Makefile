# Each recipe calls a script, which describes what it does.
.DEFAULT_GOAL := help
.PHONY: help demo cluster test check docs bench figures up down package dist clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: ## deploy an app from one vendor to one customer, on this machine
	@tests/demo/run

cluster: ## build the programs of Kubernetes clusters on the local cloud, once per machine; takes minutes, up to 40 on a busy machine
	@localstack/kubernetes/build

test: ## run every test that this machine can run; ends with a list of what was skipped, and why
	@tests/run

check: ## check format, lints, dependencies, templates, pages and their links
	@tests/check

docs: ## build docs/ and the documentation of the crates as one book, and check its links
	@tests/docs/run

bench: ## measure time, memory and size of a release of this tree; fail when one is over its limit and not known to be
	@tests/bench/run --release

figures: ## write docs/figures.md: searches, deploys with faults, fuzzers, decisions; ONLY="iam stack" runs parts of it
	@tests/figures/run $(if $(ONLY),--only $(ONLY))

up: ## start the local cloud on 127.0.0.1:4566
	@localstack/cloud up --detach

down: ## stop the local cloud
	@localstack/cloud down

package: ## build the function zips for Lambda (arm64 and x86_64) and check their size
	@infra/package

dist: ## make a release in target/dist: functions, programs, bills of materials, checksums; KEY=file signs it
	@infra/dist $(if $(KEY),--key $(KEY)) $(if $(AGAIN),--again)

clean: ## remove build output and the files of the local cloud
	@localstack/cloud down && cargo clean
