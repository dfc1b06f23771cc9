# Everything a contributor or a CI job runs; `make help` lists it. Each target
# installs or builds what it needs: on a fresh Debian or Ubuntu machine, Go, git
# and make are enough.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

GO ?= go
FUZZTIME ?= 10s
BENCH ?= .
BENCHCOUNT ?= 1
SEEDS ?= 20
DAYS ?= 30

# Built tools are kept outside the tree, by version, so that they are built once
# a machine. Tests find them through STAMPEDE_TOOLS/bin.
STAMPEDE_TOOLS ?= $(HOME)/.cache/stampede-tools
export STAMPEDE_TOOLS
tools_bin := $(STAMPEDE_TOOLS)/bin

# The newest Alertmanager that `go install` can build: later ones lack their
# generated user interface in the module. Prometheus's module version is its
# release's with 0.3 in front; remove_all_sd leaves out the cloud SDKs, which
# would take a quarter of an hour to compile.
ALERTMANAGER_VERSION := 0.31.1
PROMETHEUS_VERSION := 3.16.0
STATICCHECK_VERSION := 0.8.2
prometheus_module := 0.316.0
stamp = -ldflags "-s -w -X github.com/prometheus/common/version.Version=$(1)"

alertmanager := $(STAMPEDE_TOOLS)/alertmanager-$(ALERTMANAGER_VERSION)/alertmanager
prometheus := $(STAMPEDE_TOOLS)/prometheus-$(PROMETHEUS_VERSION)/prometheus
promtool := $(STAMPEDE_TOOLS)/promtool-$(PROMETHEUS_VERSION)/promtool
staticcheck := $(STAMPEDE_TOOLS)/staticcheck-$(STATICCHECK_VERSION)/staticcheck

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
version_pkg := github.com/prometheus/common/version
ldflags = -s -w \
	-X $(version_pkg).Version=$(VERSION) \
	-X $(version_pkg).Revision=$(shell git rev-parse --verify -q HEAD 2>/dev/null || echo unknown) \
	-X $(version_pkg).Branch=$(shell git branch --show-current 2>/dev/null || echo unknown) \
	-X $(version_pkg).BuildDate=$(shell git log -1 --format=%cI 2>/dev/null || echo unknown)

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

##@ Use it

.PHONY: demo
demo: ## Watch a dogpile being caught; needs only Go (ARGS="--protect xfetch" to see it prevented)
	$(GO) run ./cmd/stampede-exporter demo $(ARGS)

.PHONY: build
build: ## Build bin/stampede-exporter, with its version in it
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(ldflags)' -o bin/stampede-exporter ./cmd/stampede-exporter

##@ Test it

.PHONY: check
check: build lint generate-check test lab test-race ## Everything CI runs

.PHONY: test
test: tools-test ## Run all tests
	$(GO) test ./...

# The end-to-end test is left out: it measures, and its processes are others. So
# are simulated hours, which one goroutine runs: what is concurrent in the lab has
# packages of its own.
.PHONY: test-race
test-race: tools-test tools-race ## Run all tests but e2e and simulated hours under the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 20m $$($(GO) list ./... | grep -v -e '/e2e$$' -e '/internal/lab$$')

.PHONY: e2e
e2e: tools-test ## Run only the end-to-end test: services, Redis, exporter, Alertmanager
	$(GO) test -count=1 -v ./e2e

# Not part of check: what a fuzzer finds first today is not the fault of the
# change under test. The inputs it has found are, and `make test` runs those.
.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (10s)
	tools/fuzz $(FUZZTIME)

.PHONY: bench
bench: ## Run the benchmarks: BENCH=regexp, BENCHCOUNT=6 to compare with benchstat
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCHCOUNT) ./...
	$(GO) -C benchmarks test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCHCOUNT) ./...

.PHONY: lab
lab: ## Run every scenario with its own seed, and fail if one does not go as expected
	$(GO) run ./cmd/stampede-exporter lab run scenarios

.PHONY: score
score: ## Score the detectors on all scenarios: held-out seeds (SEEDS, 20), at three paces, with restarts
	$(GO) run ./cmd/stampede-exporter lab score --seeds $(SEEDS) --shift --restart --progress scenarios/

.PHONY: score-quiet
score-quiet: ## Bound the rate of false pages: DAYS (30) simulated days of what is no trouble
	$(GO) run ./cmd/stampede-exporter lab score --quiet-days $(DAYS) --shift --gate --progress scenarios/ scenarios/long/

# One held-out seed of each scenario that is not among the longest.
.PHONY: score-ci
score-ci: ## Fail if a short score has a false page, misses more than one in 20, or pages twice
	$(GO) run ./cmd/stampede-exporter lab score --seeds 1 --max-reads 150000 --restart --gate scenarios/

##@ Keep it tidy

.PHONY: lint
lint: $(staticcheck) $(promtool) ## Run gofmt, vet, staticcheck, mod tidy and promtool's rule linter
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not formatted: run gofmt -w on" $$unformatted; exit 1; }
	$(GO) mod tidy -diff
	$(GO) -C benchmarks mod tidy -diff
	$(GO) vet ./...
	$(GO) -C benchmarks vet ./...
	$(staticcheck) ./...
	$(promtool) check rules --lint=all --lint-fatal alerts/*.yaml

.PHONY: generate
generate: ## Write what is made from code: dashboards, alert rules, documents
	$(GO) generate ./...

.PHONY: generate-check
generate-check: ## Fail if something made from code is out of date
	tools/unchanged $(MAKE) generate

##@ Tools

.PHONY: tools
tools: tools-test tools-race tools-lint ## Install or build every tool the targets above use

.PHONY: tools-test
tools-test: tools-servers $(alertmanager) $(promtool)

.PHONY: tools-lint
tools-lint: $(staticcheck) $(promtool)

.PHONY: tools-servers
tools-servers:
	@tools/apt-install redis-server=redis-server memcached=memcached node=nodejs npm=npm

# The race detector is written in C and linked by its compiler.
.PHONY: tools-race
tools-race:
	@tools/apt-install gcc=gcc gcc=libc6-dev

.PHONY: tools-prometheus
tools-prometheus: $(prometheus) ## Build Prometheus, to look at the dashboards with; nothing else needs it

$(alertmanager):
	$(call install,$(call stamp,$(ALERTMANAGER_VERSION)) github.com/prometheus/alertmanager/cmd/alertmanager@v$(ALERTMANAGER_VERSION))
$(prometheus):
	$(call install,-tags remove_all_sd $(call stamp,$(PROMETHEUS_VERSION)) github.com/prometheus/prometheus/cmd/prometheus@v$(prometheus_module))
$(promtool):
	$(call install,-tags remove_all_sd $(call stamp,$(PROMETHEUS_VERSION)) github.com/prometheus/prometheus/cmd/promtool@v$(prometheus_module))
$(staticcheck):
	$(call install,honnef.co/go/tools/cmd/staticcheck@v$(STATICCHECK_VERSION))

# install builds one command into the folder of its version and points bin at it.
define install
	@echo "building $(@F) into $(@D): this takes minutes, once"
	@mkdir -p $(@D) $(tools_bin)
	@CGO_ENABLED=0 GOBIN=$(@D) $(GO) install $(1)
	@ln -sfn ../$(notdir $(@D))/$(@F) $(tools_bin)/$(@F)
endef
