# Postroad. `make help` lists what can be typed; the names are part of the operator's interface.
SHELL := /bin/bash
.DEFAULT_GOAL := help
BIN := node_modules/.bin
# Node itself is a package, so that everything here runs on the same version, whichever the machine has.
NODE_FOLDER := node_modules/node-linux-$(subst aarch64,arm64,$(subst x86_64,x64,$(shell uname -m)))/bin
export PATH := $(CURDIR)/$(NODE_FOLDER):$(PATH)
TS := $(shell find src test bench -name '*.ts' -not -path 'src/console/web/*' 2>/dev/null)

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# Only what any Node.js understands. npm needs this one; everything else runs on the packaged Node.
node-version:
	@node -e 'var v = process.versions.node, n = v.split("."); if (n[0] < 20) { console.error("building Postroad needs Node.js 20 or newer, and this is " + v + " (" + process.execPath + ")"); process.exit(1) }'

node_modules/.installed: package.json package-lock.json | node-version
	@echo 'installing packages (npm ci) ...'
	@log=$$(mktemp); npm ci --engine-strict=false --no-audit --no-fund --no-progress --loglevel=error >"$$log" 2>&1 || status=$$?; \
	  [ -z "$$status" ] || cat "$$log" >&2; rm -f "$$log"; exit $${status:-0}
	@touch $@

# One file for the program and one for each kind of thread: reading a thousand small modules is most of a start. What
# has native code or worker files of its own stays outside, and what is loaded only when a person wants to see a mail.
THREADS := src/mta/workers/worker-main.ts src/inbound/reading/parser-main.ts src/db/sqlite/checkpoint-main.ts src/db/sqlite/slow-reader-main.ts \
	src/db/sqlite/backup-main.ts \
	src/audience/transfer/reading/import-reader-main.ts src/content/media/resizing/image-main.ts src/http/body/large-body-main.ts
ESBUILD := $(BIN)/esbuild --format=esm --platform=node --target=node24 --sourcemap --log-level=warning
BUNDLE := --bundle --external:better-sqlite3 --external:mailparser \
	--banner:js="import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);"
DEFINE = --define:POSTROAD_VERSION='"$(VERSION)"'
# What pages run and look like in a browser: one script and one style sheet each, read from beside the program.
BROWSER := $(shell find src -path '*/browser/*' -name 'reference.*')
BUILD_BROWSER := $(BIN)/esbuild $(BROWSER) --entry-names=[name] --bundle --minify --format=iife --platform=browser --target=es2022 --log-level=warning
# The console's front end: built once, copied beside every program that serves it.
CONSOLE := node_modules/.cache/console
$(CONSOLE)/.built: node_modules/.installed $(shell find src/console/web -type f)
	@$(BIN)/vite build --config src/console/web/vite.config.ts --logLevel warn
	@touch $@

dist/.built: node_modules/.installed $(CONSOLE)/.built $(TS) $(BROWSER)
	@rm -rf dist
	@$(ESBUILD) main=src/check-node.ts postroad=src/main.ts $(foreach file,$(THREADS),$(notdir $(basename $(file)))=$(file)) --outdir=dist --entry-names=[name] $(BUNDLE) $(DEFINE)
	@$(BUILD_BROWSER) --outdir=dist/browser
	@cp -r $(CONSOLE)/files dist/console
	@ln -s "$$(realpath --relative-to=dist "$$(command -v node)")" dist/node
	@touch $@

# Tests and benchmarks run as plain JavaScript: esbuild only strips the types (0.1 s), `make check` proves them. Test files are
# bundled, with what several of them use in chunks: tap looks at every module that a test file or one of its threads loads,
# which was most of what a run took. The threads' programs lie beside the chunks, where the code in these looks for them.
# What only tests use stays outside; there must be one tap.
TEST_ONLY := tap @electric-sql/pglite @hey-api/openapi-ts @seriousme/openapi-schema-validator axe-core esbuild mailauth mailparser oidc-provider openapi-typescript playwright-core smtp-server typescript
CHUNKS := test/chunks
build/.built: node_modules/.installed $(CONSOLE)/.built $(TS) $(BROWSER)
	@rm -rf build
	@$(ESBUILD) $(filter-out %.test.ts %.pages.ts,$(TS)) --outdir=build --outbase=.
	@$(ESBUILD) $(filter %.test.ts %.pages.ts,$(TS)) --outdir=build --outbase=. --splitting --chunk-names=$(CHUNKS)/[hash] $(BUNDLE) \
	  $(TEST_ONLY:%=--external:%)
	@$(ESBUILD) $(THREADS) --outdir=build/$(CHUNKS) --entry-names=[name] $(BUNDLE)
	@for folder in build/src/http/openapi build/$(CHUNKS); do $(BUILD_BROWSER) --outdir=$$folder/browser || exit 1; done
	@for folder in build/src/console build/$(CHUNKS); do cp -r $(CONSOLE)/files $$folder/console || exit 1; done
	@touch $@

# What tests store nobody reads again: it goes into memory where there is enough, since most of a commit is waiting for the disk.
IN_MEMORY := $(shell df --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 4000000 { print "TMPDIR=/dev/shm" }')
TAP := $(IN_MEMORY) NODE_OPTIONS='--import="$(CURDIR)/build/test/support/light-tap.js"' $(BIN)/tap $(TAP_FLAGS)
TEST_NEEDS := node_modules/.tap-built node_modules/.cache/postgres.tar

# The databases that tests begin with, after all migrations: these are seconds for each test file, reading them is a fraction of one.
node_modules/.cache/postgres.tar: node_modules/.installed src/db/migrate.ts $(wildcard src/db/migrations/*.ts src/db/migrations/*/*.ts) | build/.built
	@node build/test/support/db/write-databases.js

# tap has its plugins compiled in. A run that finds others than .taprc wants compiles them, but too late for itself: each of
# its test files would load a TypeScript compiler.
node_modules/.tap-built: node_modules/.installed
	@$(BIN)/tap build
	@touch $@

build: dist/.built ## compile to dist/

run: dist/.built ## install, build and start in the foreground with config/dev.toml (no mail leaves the machine)
	@node dist/main.js init --config config/dev.toml --operator you@postroad.test
	@exec node dist/main.js serve --config config/dev.toml

# What the console's code may ask of the two APIs. A field that changes there is a type error here.
$(CONSOLE)/types/.written: build/.built
	@node build/test/console/write-api-types.js $(CONSOLE)/types >/dev/null
	@touch $@

check: node_modules/.installed $(CONSOLE)/types/.written ## types, lint, format
	$(BIN)/oxlint
	$(BIN)/oxfmt --check
	$(BIN)/svelte-check --workspace src/console/web --tsconfig ./tsconfig.json --fail-on-warnings --output human
	$(BIN)/eslint --cache --cache-location node_modules/.cache/eslint .
	$(BIN)/prettier --check --log-level warn --cache "**/*.{svelte,css,html,json,md,yml}"

# Everything that the suites share, so that they can run side by side.
test-needs: dist/.built build/.built $(TEST_NEEDS) $(CONSOLE)/types/.written

# ONLY: these files instead of all of the target's.
# Types, lint and format are one process after the other, so they run beside the tests.
test: test-needs ## every check that needs only Node: types, lint, format, and tests on SQLite
	@$(MAKE) --no-print-directory check >build/check.out 2>&1 & check=$$!; failed=; \
	  $(MAKE) --no-print-directory test-files || failed=1; \
	  wait $$check || failed=1; cat build/check.out; [ -z "$$failed" ]

test-files: dist/.built build/.built $(TEST_NEEDS)
	$(TAP) $(ONLY)

LONG_TESTS = $(patsubst %.ts,build/%.js,$(shell grep -rl --include='*.test.ts' 'support/long.js' test))
test-long: dist/.built build/.built $(TEST_NEEDS) ## what is tried again and again (kills, random requests, long queues), all of it and not only some; .ci/run has test-files do it
	POSTROAD_TEST_LONG=1 $(TAP) $(or $(ONLY),$(LONG_TESTS))

test-debian: dist/.built build/.built $(TEST_NEEDS) ## what needs root and Debian packages: foreign SMTP server and DKIM verifiers (.ci/run installs them)
	$(TAP) $(or $(ONLY),build/test/debian/*.debian.js)

test-pages: dist/.built build/.built $(TEST_NEEDS) ## public pages in Debian's Chromium: clicked through, held to axe, with POSTROAD_PICTURES=FOLDER pictured (.ci/run installs it)
	$(TAP) --jobs=1 --timeout=900 $(or $(ONLY),build/test/pages/*.pages.js)

readme-pictures: dist/.built build/.built $(TEST_NEEDS) ## take the README's pictures of the console into docs/images
	@$(TAP) --jobs=1 --timeout=900 build/test/pages/write-readme-pictures.js

WITH_POSTGRES = node build/test/support/db/with-postgres.js

test-nodes: dist/.built build/.built $(TEST_NEEDS) ## several servers on one PostgreSQL, which is started for it (.ci/run installs it)
	@$(WITH_POSTGRES) $(MAKE) --no-print-directory run-test-nodes

run-test-nodes:
	$(TAP) --jobs=2 --timeout=900 $(or $(ONLY),build/test/nodes/*.nodes.js)

# Declared for both databases, and on PostgreSQL here; and what only PostgreSQL has.
STORE_TESTS = $(patsubst %.ts,build/%.js,$(shell grep -rlE --include='*.test.ts' 'eachDatabase|onPostgres' test) $(shell find test -name '*.postgres.ts'))
SERVED_TESTS = $(patsubst %.ts,build/%.js,$(shell find test -name '*-served.test.ts'))

test-postgres: dist/.built build/.built $(TEST_NEEDS) ## the stores and the served API on a PostgreSQL that is started for it; where none is installed, the stores on PGlite
ifneq ($(wildcard /usr/lib/postgresql/*/bin/initdb),)
	@$(WITH_POSTGRES) $(MAKE) --no-print-directory run-test-postgres
else
	TEST_PGLITE=1 $(TAP) $(or $(ONLY),$(STORE_TESTS))
endif

run-test-postgres:
	$(TAP) $(or $(ONLY),$(sort $(STORE_TESTS) $(SERVED_TESTS)))

RUN_SUITES = node build/test/support/suites/run-suites.js
SUITE = test-files
ROUNDS = 3

test-times: test-needs ## what each file of SUITE (test-files) takes, slowest first: make test-times SUITE=test-nodes
	@$(RUN_SUITES) $(SUITE)

test-busy: test-needs ## SUITE (test-files) on a machine that is busy with other things, ROUNDS (3) times; lists what failed: make test-busy SUITE=test-pages
	@$(RUN_SUITES) --busy --rounds $(ROUNDS) $(SUITE)

bench: dist/.built build/.built ## measure acceptance, relay, API and start of the real program; BENCH_FLAGS='--quick --only relay'
	@node build/bench/main.js $(BENCH_FLAGS)

# Proofs that anyone can repeat (docs/proof.md): each prints a table, and ends with status 1 if a promise was broken.
crash: test-needs ## kill a busy server KILLS (100) times and compare what arrived with what was promised; SEED, RATE (mails a second)
	@$(IN_MEMORY) KILLS=$(KILLS) SEED=$(SEED) RATE=$(RATE) node build/test/proof/crash/crash.js

FAULTS = node build/test/proof/faults/faults.js $(ONLY)
faults: test-needs ## full and read-only disks, lost files, DNS, clocks, descriptors, threads, PostgreSQL: the documented behaviour of each; ONLY=names runs one file
ifneq ($(wildcard /usr/lib/postgresql/*/bin/initdb),)
	@$(IN_MEMORY) $(WITH_POSTGRES) $(FAULTS)
else
	@$(IN_MEMORY) $(FAULTS)
endif

soak: test-needs ## 60 % of capacity for MINUTES (30), and whether memory, latencies and all else stay; curves in OUT (build/soak); SEED, RATE
	@MINUTES=$(MINUTES) SEED=$(SEED) RATE=$(RATE) OUT=$(OUT) node build/test/proof/soak/soak.js

bounce-score: build/.built ## how many of the labelled bounces in ../shared/bounces are read right; SCORE_FLAGS=--failing names the others
	@node build/test/support/returned/bounce-score.js $(SCORE_FLAGS)

simulate-queue: build/.built ## run the queue under random delays, failures and restarts, one run for each of SEEDS (1-300): none may lose, repeat or forget mail
	@node build/test/simulation/simulate-queue.js $(or $(SEEDS),1-300)

fuzz-bounces: build/.built ## read FUZZ_COUNT (100000) broken mails: none may throw, take a second, or let memory grow
	@node build/test/support/returned/fuzz-bounces.js $(or $(FUZZ_COUNT),100000) $(or $(FUZZ_SEED),1)

include packaging/package.mk

.PHONY: node-version help build run check test test-needs test-files test-times test-busy test-long test-debian test-pages test-nodes run-test-nodes test-postgres run-test-postgres readme-pictures test-package bench bounce-score fuzz-bounces simulate-queue crash faults soak binary deb
