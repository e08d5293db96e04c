# Recipes call scripts; what they do is written there.
.DEFAULT_GOAL := help
.PHONY: help demo test check bench figures up down package clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: ## one vendor, one customer, one deploy, on this machine
	@tests/demo/run

test: ## everything that runs on this machine; ends with what was skipped and why
	@tests/run

check: ## format, lints, templates and state machines
	@tests/check

bench: ## measure the budgets of the design against their gates
	@tests/bench/run

figures: ## count what the model and the faulty deploys show; writes docs/figures.md
	@tests/figures/run

up: ## start the local cloud on 127.0.0.1:4566
	@localstack/cloud up --detach

down: ## stop the local cloud
	@localstack/cloud down

package: ## the function zips for Lambda, arm64 and x86_64, against the size budget
	@infra/package

clean: ## remove what was built, the local cloud's files too
	@localstack/cloud down && cargo clean
