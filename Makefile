# `make deps` fetches what `make run` needs, `make deps/test` everything else. All versions
# are pinned and everything is stored in .deps. Remove .deps to fetch it again.

GOLANGCI_LINT_VERSION := v2.15.0
GOFUMPT_VERSION       := v0.12.0
SQLC_VERSION          := v1.31.1
OAPI_CODEGEN_VERSION  := v2.8.2

DEPS := .deps
BIN  := $(DEPS)/bin

# CGO_ENABLED=0 builds without a C compiler. -buildvcs=false omits the version control
# stamp, which makes `go build` fail in a clone of another user.
export CGO_ENABLED := 0
GOBUILD := go build -buildvcs=false

# `go build ./cmd/quittance` uses the profile of `make pgo`. Targets that build for tests
# and checks do not: a profile builds every package a second time. -trimpath lets clones in
# other folders share what is compiled, and keeps the folder's name out of programs.
PROFILE := cmd/quittance/default.pgo
export GOFLAGS := $(GOFLAGS) -pgo=off -trimpath

# Flags of `make run`; an empty one means the program's default:
# make run BROKER=kafka PORT=9000 DATA=/srv/quittance
BROKER ?=
PORT   ?=
DATA   ?=

# The packages of `make test` (all but the suites when empty), and further flags of go test:
# make test PACKAGES=./checkout/... TESTFLAGS='-run Fees -v'
PACKAGES  ?=
TESTFLAGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z\/-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- fetching ----

.PHONY: deps deps/test
deps: $(DEPS)/.go $(DEPS)/.chdb $(DEPS)/.postgres ## fetch what `make run` needs: Go modules, ClickHouse's engine, PostgreSQL
deps/test: deps $(DEPS)/.kafka-archive $(DEPS)/.browser $(DEPS)/.schemathesis $(DEPS)/.standardwebhooks $(DEPS)/.iso20022 $(DEPS)/.sftp $(DEPS)/.proxy $(DEPS)/.prometheus $(DEPS)/.clients $(DEPS)/.clients-node $(DEPS)/.spectral $(DEPS)/.papers $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION) $(BIN)/gofumpt-$(GOFUMPT_VERSION) $(BIN)/oapi-codegen-$(OAPI_CODEGEN_VERSION) ## fetch also what tests and lint need: Kafka, Java, Chromium, nginx, Caddy, Prometheus, generators of clients, Spectral, readers of PDFs, linters

$(DEPS) $(BIN):
	@mkdir -p $@

$(DEPS)/.go: go.mod go.sum | $(DEPS)
	@command -v go >/dev/null || { echo "Go is missing: install the version that go.mod names, or a later one" >&2; exit 1; }
	@echo "fetching Go modules" >&2
	@go list -e -deps -test ./... >$(DEPS)/packages.txt
	@touch $@

$(DEPS)/.chdb: dev/stack/chdb/npm/package-lock.json | $(DEPS)
	@dev/tools/need node npm
	@echo "fetching ClickHouse's engine (170 MB)" >&2
	@dev/tools/npm-ci dev/stack/chdb/npm $(DEPS)/chdb
	@touch $@

# The module in go.mod determines the version, postgres.sha256 the file.
$(DEPS)/.postgres: $(DEPS)/.go dev/stack/postgres.sha256
	@go run ./dev/stack/prepare postgres $(DEPS)/postgres
	@touch $@

$(DEPS)/.kafka: deploy/kafka/pom.xml deploy/kafka/jars.sha256 | $(DEPS)
	@dev/tools/need java mvn
	@echo "fetching Kafka's jars (45 MB)" >&2
	@mkdir -p $(DEPS)/kafka
	@dev/tools/kafka-jars $(DEPS)/kafka/libs
	@touch $@

# Tests start about 30 brokers. With this archive the start of each takes half the CPU time.
$(DEPS)/.kafka-archive: $(DEPS)/.kafka $(DEPS)/.go
	@go run ./dev/stack/prepare kafka $(DEPS)/kafka/libs || echo "going on without the archive of Kafka's classes: brokers start slower" >&2
	@touch $@

# Chromium without a window needs half the time. Without it tests use the other Chromium.
$(DEPS)/.browser: test/tools/browser/package-lock.json | $(DEPS)
	@dev/tools/need node npm chromium
	@dev/tools/need chromium-headless-shell || echo "going on without chromium-headless-shell: tests take longer" >&2
	@echo "fetching what drives the browser" >&2
	@dev/tools/npm-ci test/tools/browser $(DEPS)/browser
	@touch $@

# requirements.txt pins wheels for Python 3.11 or later.
$(DEPS)/.schemathesis: test/tools/schemathesis/requirements.txt test/tools/schemathesis/install | $(DEPS)
	@dev/tools/need python3
	@echo "fetching schemathesis (95 MB)" >&2
	@test/tools/schemathesis/install $(DEPS)/schemathesis
	@touch $@

$(DEPS)/.standardwebhooks: test/tools/standardwebhooks/requirements.txt test/tools/standardwebhooks/package-lock.json test/tools/standardwebhooks/install | $(DEPS)
	@dev/tools/need python3 node npm
	@echo "fetching the Standard Webhooks libraries for Python and JavaScript" >&2
	@test/tools/standardwebhooks/install $(DEPS)/standardwebhooks
	@touch $@

# What says whether files of banks are valid, and reads them.
ISO := test/tools/iso20022
$(DEPS)/.iso20022: $(ISO)/requirements.txt $(ISO)/pom.xml $(ISO)/jars.sha256 $(ISO)/install | $(DEPS)
	@dev/tools/need python3 java mvn
	@echo "fetching the ISO 20022 schemas of statements and payment files, a validator and a reader (50 MB)" >&2
	@$(ISO)/install $(DEPS)/iso20022
	@touch $@

# What generates clients from openapi.yaml, and what the generated clients need.
CLIENTS := test/tools/clients
$(DEPS)/.clients: $(CLIENTS)/requirements.txt $(CLIENTS)/pom.xml $(CLIENTS)/jars.sha256 $(CLIENTS)/install | $(DEPS)
	@dev/tools/need python3 java javac mvn php
	@echo "fetching generators of Java, PHP and Python clients (90 MB)" >&2
	@$(CLIENTS)/install $(DEPS)/clients
	@touch $@

$(DEPS)/.clients-node: $(CLIENTS)/package-lock.json | $(DEPS)
	@dev/tools/need node npm
	@echo "fetching generators of TypeScript clients" >&2
	@dev/tools/npm-ci $(CLIENTS) $(DEPS)/clients/node
	@touch $@

# What checks the OpenAPI files.
$(DEPS)/.spectral: test/tools/spectral/package-lock.json | $(DEPS)
	@dev/tools/need node npm
	@echo "fetching Spectral (70 MB)" >&2
	@dev/tools/npm-ci test/tools/spectral $(DEPS)/spectral
	@touch $@

# What says whether a PDF is PDF/A, and reads PDFs, QR codes and the tokens in them.
PAPERS := test/tools/papers
$(DEPS)/.papers: $(PAPERS)/requirements.txt $(PAPERS)/package-lock.json $(PAPERS)/pom.xml $(PAPERS)/jars.sha256 $(PAPERS)/install | $(DEPS)
	@dev/tools/need python3 node npm java javac mvn
	@echo "fetching veraPDF, MuPDF and readers of QR codes and tokens (60 MB)" >&2
	@$(PAPERS)/install $(DEPS)/papers
	@touch $@

$(DEPS)/.proxy: test/proxy/packages dev/tools/debian-packages | $(DEPS)
	@echo "fetching nginx and Caddy (10 MB)" >&2
	@dev/tools/debian-packages test/proxy/packages $(DEPS)/proxy
	@touch $@

$(DEPS)/.sftp: test/tools/sftp/packages dev/tools/debian-packages | $(DEPS)
	@echo "fetching OpenSSH's SFTP server" >&2
	@dev/tools/debian-packages test/tools/sftp/packages $(DEPS)/sftp
	@touch $@

$(DEPS)/.prometheus: test/tools/prometheus/packages dev/tools/debian-packages | $(DEPS)
	@echo "fetching Prometheus and promtool (20 MB)" >&2
	@dev/tools/debian-packages test/tools/prometheus/packages $(DEPS)/prometheus
	@touch $@

# gotool installs a program under its name, and under its name with the version. The second
# file is the target, so that another version is another target.
define gotool
$(BIN)/$(1)-$(2): | $(BIN)
	@echo "building $(1) $(2)" >&2
	@GOBIN=$$(CURDIR)/$(BIN) go install $(3)@$(2)
	@ln -f $(BIN)/$(1) $$@
endef
$(eval $(call gotool,golangci-lint,$(GOLANGCI_LINT_VERSION),github.com/golangci/golangci-lint/v2/cmd/golangci-lint))
$(eval $(call gotool,gofumpt,$(GOFUMPT_VERSION),mvdan.cc/gofumpt))
$(eval $(call gotool,sqlc,$(SQLC_VERSION),github.com/sqlc-dev/sqlc/cmd/sqlc))
$(eval $(call gotool,oapi-codegen,$(OAPI_CODEGEN_VERSION),github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen))

GENERATORS := $(BIN)/sqlc-$(SQLC_VERSION) $(BIN)/oapi-codegen-$(OAPI_CODEGEN_VERSION) $(DEPS)/.clients-node

# ---- releasing ----

.PHONY: release release/verify
release: $(DEPS)/.go ## make the files of a release of the present commit in dist/
	@go run ./dev/release --out dist

release/verify: $(DEPS)/.go ## make the release once more from a clone, compare all files, and run the image's program (as root)
	@go run ./dev/release --out dist --verify

# ---- running ----

.PHONY: run
run: deps $(if $(filter kafka,$(BROKER)),$(DEPS)/.kafka) | $(BIN) ## run everything on this machine, in developer mode (BROKER=kafka, PORT=, DATA=)
	@$(GOBUILD) -o $(BIN)/quittance-dev ./cmd/quittance-dev
	@exec $(BIN)/quittance-dev up $(if $(BROKER),--broker $(BROKER)) $(if $(PORT),--port $(PORT)) $(if $(DATA),--data $(DATA))

# The flags save time: brokers run for seconds, the linter runs vet, nobody debugs these
# binaries, tests wait much of their time, so three packages with four tests each run at once,
# and garbage is collected late, in the linker too. Tests of the suites have installations and
# browsers of their own, so fewer of them run at once: more only wait for each other.
GOTEST = env GOGC=400 go test -vet=off -ldflags='-w -s' -timeout 40m -p 3 -parallel 4 $(TESTFLAGS)
GOSUITES = env GOGC=400 go test -vet=off -ldflags='-w -s' -timeout 40m -p 2 -parallel 3 $(TESTFLAGS)

# testservers stops the servers at the end. It starts them before all packages or the suites run;
# for PACKAGES= each starts when a test first asks for it.
.PHONY: test test/suites test/all
test: deps/test ## run all tests but the suites; real servers start by need (PACKAGES=, TESTFLAGS=)
	@$(call gotest,$(if $(PACKAGES),,-all),$(or $(PACKAGES),$(call packages,0)))

test/suites: deps/test ## run the suites: journeys, contract, operations, crash, delivery, linear, messages, mutants, the matcher's oracle
	@$(call gotest,-all,$(addprefix ./,$(SUITES)),$(GOSUITES))

test/all: deps/test ## run all tests and all suites
	@$(call gotest,-all,$(call packages,1))

define gotest
$(GOBUILD) -o $(BIN)/ ./test/servers/testservers && \
	QUITTANCE_KAFKA_JVM="-XX:+UseSerialGC -XX:TieredStopAtLevel=1" $(BIN)/testservers $(1) -- $(or $(3),$(GOTEST)) $(2)
endef

# The suites, the longest first. Each runs whole programs, except the matcher's: there, many
# histories that ClickHouse holds are matched in runs, with kills, and compared with one run.
SUITES := test/journeys test/contract test/operations reconciliation/matcher test/crash test/delivery test/linear test/messages test/mutants

# packages lists all packages, with the suites or without. go test begins packages in the order
# of its arguments. The suites need most of the CPU time and the other packages wait more, so
# the list has two suites first, and one more after every 16 other packages.
packages = $$(go list ./... | awk -v suites="$(SUITES)" -v all=$(1) '\
	BEGIN { n = split(suites, suite); for (i in suite) { suite[i] = "quittance/" suite[i]; known[suite[i]] } \
		if (all) { print suite[1] "\n" suite[2] } else { n = 0 } i = 2 } \
	!($$1 in known) { print; if (++others % 16 == 0 && i < n) print suite[++i] }')

# The crash test starts servers of its own, because it kills them.
.PHONY: test/crash
test/crash: deps/test ## kill processes under load for a minute, while 50,000 people are paid and while staff work, then count what is lost and doubled
	@rm -f $(DEPS)/crash-report.txt
	@QUITTANCE_CRASH=full QUITTANCE_CRASH_REPORT=$(CURDIR)/$(DEPS)/crash-report.txt \
		go test -count=1 -v -timeout 20m -run '^TestCrash$$' ./test/crash; first=$$?; \
	QUITTANCE_CRASH=full QUITTANCE_CRASH_REPORT=$(CURDIR)/$(DEPS)/crash-report.txt \
		go test -count=1 -v -timeout 60m -run '^TestCrashOfBatches$$' ./test/crash; second=$$?; \
	QUITTANCE_CRASH=full QUITTANCE_CRASH_REPORT=$(CURDIR)/$(DEPS)/crash-report.txt \
		go test -count=1 -v -timeout 30m -run '^TestCrashOfOffice$$' ./test/crash; third=$$?; \
	cat $(DEPS)/crash-report.txt 2>/dev/null; exit $$((first | second | third))

# The test of messages starts servers of its own, because it stops them.
.PHONY: test/messages
test/messages: deps/test ## kill the sink of messages and take their providers away for days, then count lost and doubled messages
	@rm -f $(DEPS)/messages-report.txt
	@QUITTANCE_MESSAGES=full QUITTANCE_MESSAGES_REPORT=$(CURDIR)/$(DEPS)/messages-report.txt \
		go test -count=1 -v -timeout 30m -run '^TestMessages$$' ./test/messages >$(DEPS)/messages-output.txt 2>&1; \
		status=$$?; cat $(DEPS)/messages-report.txt 2>/dev/null; [ $$status -eq 0 ] || cat $(DEPS)/messages-output.txt; exit $$status

.PHONY: test/contract
test/contract: deps/test ## check each statement of the contract's ministry and cash-in sections on the running service
	@rm -f $(DEPS)/contract-report.txt
	@QUITTANCE_CONTRACT_REPORT=$(CURDIR)/$(DEPS)/contract-report.txt \
		go test -count=1 -timeout 10m -run '^(TestContract|TestCashin)$$' ./test/contract >$(DEPS)/contract-output.txt 2>&1; \
		status=$$?; cat $(DEPS)/contract-report.txt 2>/dev/null; [ $$status -eq 0 ] || cat $(DEPS)/contract-output.txt; exit $$status

.PHONY: test/clients
test/clients: deps/test ## generate clients from the served OpenAPI file with six generators and use them; run the tests of sdk/go and sdk/node
	@go test -count=1 -v -timeout 10m -run '^(TestGeneratedClients|TestBackEndSDKs|TestNodeSDKTypes)$$' ./test/contract

.PHONY: test/journeys
test/journeys: deps/test ## pay in a browser with every outcome on every way
	@QUITTANCE_JOURNEYS=. go test -count=1 -timeout 30m -run '^TestJourneys$$' ./test/journeys

.PHONY: test/pages
test/pages: deps/test ## audit every page in both languages and at every width
	@QUITTANCE_AUDIT=full go test -count=1 -timeout 30m -run 'ForEverybody$$' ./test/journeys

.PHONY: test/linearizability
test/linearizability: deps/test ## check 200 histories of concurrent requests, with kills, against the model, and that it rejects a broken build
	@rm -f $(DEPS)/linearizability-report.txt
	@QUITTANCE_LINEARIZABILITY=full QUITTANCE_LINEARIZABILITY_REPORT=$(CURDIR)/$(DEPS)/linearizability-report.txt \
		go test -count=1 -v -timeout 30m -parallel 1 -run '^(TestLinearizability|TestLinearizabilityModel|TestBrokenOverlayIsCaught)$$' ./test/linear; \
		status=$$?; cat $(DEPS)/linearizability-report.txt 2>/dev/null; exit $$status

.PHONY: test/schemathesis
test/schemathesis: deps/test ## send 8,000 requests made from both OpenAPI files and validate their answers against them
	@QUITTANCE_SCHEMATHESIS=full go test -count=1 -v -timeout 45m -run '^TestSchemathesis$$|^TestCashin$$/^schemathesis$$' ./test/contract

.PHONY: test/fuzz
test/fuzz: deps ## fuzz request bodies, queries, ids, tokens, statements and files of lines (SECONDS_EACH=60)
	@for t in FuzzCreate FuzzVerify FuzzQuery; do \
		go test ./ingress/ministry -run '^$$' -fuzz "^$$t$$" -fuzztime $(or $(SECONDS_EACH),60)s || exit 1; done
	@for t in FuzzInitCheckout FuzzPartnersPayments FuzzCredentials; do \
		go test ./ingress/cashin -run '^$$' -fuzz "^$$t$$" -fuzztime $(or $(SECONDS_EACH),60)s || exit 1; done
	@go test ./internal/statements -run '^$$' -fuzz '^FuzzRead$$' -fuzztime $(or $(SECONDS_EACH),60)s
	@for t in FuzzCSV FuzzSheet FuzzRead FuzzContent; do \
		go test ./internal/disbursements/lines -run '^$$' -fuzz "^$$t$$" -fuzztime $(or $(SECONDS_EACH),60)s || exit 1; done
	@go test ./internal/form -run '^$$' -fuzz '^FuzzDecode$$' -fuzztime $(or $(SECONDS_EACH),60)s
	@go test ./checkout -run '^$$' -fuzz '^FuzzRoutableIDs$$' -fuzztime $(or $(SECONDS_EACH),60)s

.PHONY: bench
bench: deps/test ## measure creations per second and the raw echo of the same broker
	@$(GOBUILD) -pgo=$(PROFILE) -o $(BIN)/quittance-dev ./cmd/quittance-dev
	@exec $(BIN)/quittance-dev bench create

.PHONY: pgo
pgo: deps/test ## record the CPU profile by which release builds are optimised
	@$(GOBUILD) -o $(BIN)/quittance-dev ./cmd/quittance-dev
	@$(BIN)/quittance-dev bench create --rounds 1 --seconds 20 --profile $(DEPS)/profile
	@go tool pprof -proto $(DEPS)/profile/ingress.cpu.pprof $(DEPS)/profile/processor.cpu.pprof > $(PROFILE)

.PHONY: bench/quota
bench/quota: deps/test ## flood four ingresses with creations, count them, and measure their cost for other applications
	@$(GOBUILD) -o $(BIN)/quittance-dev ./cmd/quittance-dev
	@exec $(BIN)/quittance-dev bench quota

.PHONY: bench/delivery
bench/delivery: deps/test ## measure deliveries, also beside faulty endpoints, and count losses by kills and outages (an hour)
	@$(GOBUILD) -o $(BIN)/quittance-dev ./cmd/quittance-dev
	@exec $(BIN)/quittance-dev bench delivery

.PHONY: bench/letters
bench/letters: deps $(DEPS)/.kafka ## pay 50 times a second for two minutes, and measure when each receipt is at the mail server
	@$(GOBUILD) -o $(BIN)/quittance-dev ./cmd/quittance-dev
	@exec $(BIN)/quittance-dev bench letters

.PHONY: bench/match
bench/match: deps $(DEPS)/.kafka ## match a day of a million lines, and a day after a short and a long history
	@$(GOBUILD) -o $(BIN)/quittance-dev ./cmd/quittance-dev
	@exec $(BIN)/quittance-dev bench match

.PHONY: bench/office
bench/office: deps $(DEPS)/.kafka ## let 50 people look at pages of staff with 10^6 sessions, and measure what integrators notice
	@$(GOBUILD) -o $(BIN)/quittance-dev ./cmd/quittance-dev
	@exec $(BIN)/quittance-dev bench office

.PHONY: bench/disburse
bench/disburse: deps $(DEPS)/.kafka ## pay 100,000 people, and measure imports, payments, memory and what others notice
	@$(GOBUILD) -o $(BIN)/quittance-dev ./cmd/quittance-dev
	@exec $(BIN)/quittance-dev bench disburse --lines 100000

.PHONY: bench/live
bench/live: deps ## approve the payments of 500 waiting citizens, and measure when each page shows it
	@$(GOBUILD) -o $(BIN)/quittance-dev ./cmd/quittance-dev
	@exec $(BIN)/quittance-dev bench live

# It needs the machine for itself: other work would delay what is timed.
.PHONY: test/budgets
test/budgets: deps/test ## compare with the budgets the first paint, and when 500 waiting citizens see that they have paid
	@rm -f $(DEPS)/budgets-report.txt
	@QUITTANCE_BUDGETS_REPORT=$(CURDIR)/$(DEPS)/budgets-report.txt \
		go test -count=1 -timeout 10m -run '^TestBudgets$$' ./test/budgets; \
		status=$$?; cat $(DEPS)/budgets-report.txt 2>/dev/null; exit $$status

.PHONY: test/flood
test/flood: deps/test ## have 1000 citizens pay beside a flood of 200,000 addresses, and compare what they wait with a quiet run
	@rm -f $(DEPS)/flood-report.txt
	@QUITTANCE_FLOOD_REPORT=$(CURDIR)/$(DEPS)/flood-report.txt \
		go test -count=1 -timeout 20m -run '^TestFlood$$' ./ingress/pages; \
		status=$$?; cat $(DEPS)/flood-report.txt 2>/dev/null; exit $$status

.PHONY: test/attacks
test/attacks: deps/test ## take a part of an installation and try what its taker would; COMMIT=8de99f78 attacks that release
	@QUITTANCE_ATTACKS=1 QUITTANCE_ATTACKS_COMMIT=$(COMMIT) go test -count=1 -timeout 20m -v -run '^TestAttacks$$' ./test/attacks

.PHONY: screens
screens: deps/test ## take a picture of every page, into .deps/screens, and those that documents show, into docs/screens
	@QUITTANCE_SCREENS=write go test -count=1 -timeout 10m -run '^TestScreens$$' ./test/journeys

# ---- checking ----

# Its garbage is collected late, up to a bound of memory: that halves its CPU time.
GOLINT := env GOGC=800 GOMEMLIMIT=6GiB $(CURDIR)/$(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION) run ./...

.PHONY: lint
lint: deps/test ## check style, faults and the imports between packages
	@$(GOLINT)
	@cd sdk/go && $(GOLINT)

# VULNDB=file:///srv/vulndb or https://…: a copy of the database, where vuln.go.dev is out of reach.
.PHONY: vulncheck
vulncheck: $(DEPS)/.go ## fail on known vulnerabilities that the programs can reach; skipped with a warning without a database (VULNDB=)
	@dev/tools/vulncheck ./cmd/...

.PHONY: deps/outdated
deps/outdated: $(DEPS)/.go ## list everything that is fetched, with the present and the newest version and their dates
	@go run ./dev/outdated

.PHONY: generate
generate: deps $(GENERATORS) ## generate the generated code
	@PATH="$(CURDIR)/$(BIN):$$PATH" go generate ./...
	@$(BIN)/sqlc-$(SQLC_VERSION) generate
	@$(BIN)/oapi-codegen-$(OAPI_CODEGEN_VERSION) -config ingress/ministry/internal/api/config.yaml ingress/ministry/openapi.yaml
	@$(BIN)/oapi-codegen-$(OAPI_CODEGEN_VERSION) -config sdk/go/generate.yaml ingress/ministry/openapi.yaml
	@$(DEPS)/clients/node/node_modules/.bin/openapi-typescript ingress/ministry/openapi.yaml --output sdk/node/src/schema.d.ts >/dev/null 2>&1

.PHONY: generate/check
generate/check: deps $(GENERATORS) ## fail if the generated code is not up to date, or if a mutant does not fit the code
	@dev/tools/generate-check $(MAKE) generate
	@go test -vet=off -run '^TestPatchesApply$$' ./test/mutants

.PHONY: verify
verify: ## lint, vulncheck, generate/check, test, test/suites and test/budgets: what CI runs
	@$(MAKE) lint
	@$(MAKE) vulncheck
	@$(MAKE) generate/check
	@$(MAKE) test
	@$(MAKE) test/suites
	@$(MAKE) test/budgets
