# make demo    starts everything and plays New York's departures of 2013 through it; KEEP=1 leaves it running
# make test    everything that a change must pass; FILTER=… runs the tests whose Target.Suite/name matches
# make hostile 12,000 sockets that never authenticate against a gateway with 200 sessions; prints latencies and memory
# make soak    the long plays in full: random apps, simulated networks, killed gateways and sinks; hours; what fails names its seed
# make asan    hostile plugins with AddressSanitizer
# make bench   the benchmarks, in release mode; ARGS=… goes to them
# make fuzz    the parsers that a stranger reaches, each under libFuzzer; SECONDS=60 for each unless given
# make lint    format, layers, dependencies of an app, quoting of SQL and the English of comments and pages; make format writes the format
# make manual  installs completion scripts and man pages below PREFIX; PROGRAM=… is the built sluice
# make image   builds the image without a container engine and serves from it; needs root and Debian

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup packages fetch demo test checks build soak hostile asan bench fuzz lint format manual image

PREFIX ?= /usr/local
PROGRAM ?= .build/release/sluice
sources := $(wildcard Sources Plugins Tests Benchmarks/Sources Examples Fuzz) Package.swift
## Targets with property tests, which draw more with SLUICE_SOAK.
with_seeds := (?:Sluice(?:Values|Core|Query|Match|Merge|Wire|Realm|Replica|Sync|SDK|Pipeline|PluginHost|Postgres|Kafka)|AppServicesRules)Tests\.
swift_files = find $(sources) -name '*.swift' -not -name '*.pb.swift' -not -path '*/.build*/*' -print0

help:
	@sed -n 's/^# //p' Makefile

setup:
	@dev/setup

packages:
	@dev/setup --packages

fetch:
	swift package resolve

demo: setup
	exec env KEEP=$(KEEP) setpriv --pdeathsig=TERM dev/demo

## What waits for the network runs beside what calculates. The checks take the time that the build leaves.
test:
	$(MAKE) --jobs=2 packages fetch
	$(MAKE) --jobs=3 setup checks build
	dev/run-tests --skip-build $(if $(FILTER),--filter '$(FILTER)')

checks:
	nice -n 19 $(MAKE) lint
	nice -n 19 dev/check-compose
	nice -n 19 dev/check-context
	nice -n 19 dev/check-servers
	nice -n 19 dev/check-groups
	nice -n 19 dev/fuzz --check

build:
	dev/run-tests --build-only

soak: setup
	SLUICE_SOAK=1 SLUICE_TEST_PROCESSES=1 dev/run-tests --filter 'OracleTests|GoingOnScenarios' --filter '$(with_seeds)'
	SLUICE_SOAK=1 dev/run-tests --filter 'EndToEndTests.CausalTests'
	SLUICE_SOAK=1 dev/run-tests --filter 'EndToEndTests.IngestFaultTests'

hostile: setup
	for product in sluice sluice-plugin-host AppServicesRules; do swift build -c release --product $$product; done
	dev/with-servers --postgres dev/hostile $(ARGS)

asan: setup
	dev/asan

bench: setup
	swift build -c release --package-path Benchmarks
	dev/with-servers --postgres --kafka Benchmarks/.build/release/sluice-bench $(ARGS)

fuzz:
	dev/fuzz $(SECONDS)

lint:
	dev/check-layers
	dev/check-traits
	dev/check-quoting
	dev/check-prose
	$(swift_files) | xargs -0 swift format lint --strict --parallel --configuration .swift-format
	if command -v shellcheck >/dev/null; then shellcheck .ci/run $$(grep -lE '^#!.*bash' dev/*); fi

format:
	$(swift_files) | xargs -0 swift format format --in-place --parallel --configuration .swift-format

manual:
	dev/install-manual $(PROGRAM) $(PREFIX)

image:
	dev/check-image
