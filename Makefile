# Builds, installs and tests aidb. `make help` lists what there is to say.
#
# Two libraries come out of this tree and they never mix: aidb.so is C, built by PGXS as any extension is, and
# aidb_go.so is the Go runtime with everything written in Go, which aidb.so loads when a session first needs it.
#
# This file plays two parts. Called by you it is the ordinary Makefile. Called by itself in build/ with AIDB_PGXS=1 it is
# the module's PGXS makefile, so that the objects land in build/ and the source folders stay clean.

PG_MAJOR ?= 15
PG_CONFIG ?= $(firstword $(wildcard /usr/lib/postgresql/$(PG_MAJOR)/bin/pg_config) pg_config)

ifdef AIDB_PGXS
# ---------------------------------------------------------------------------------------------------------------------
# The C library, by PGXS. The working directory is build/, the sources are one level up.

MODULE_big = aidb
PGFILEDESC = "aidb - LLM agents inside PostgreSQL"
OBJS = $(patsubst ../%.c,%.o,$(sort $(wildcard ../c_shim/*.c ../worker/*.c)))

# The server's headers are named as system headers, so that -Wextra judges our code and not theirs.
# -Wno-unused-parameter: hooks and callbacks have the signature the server gives them, used or not.
PG_CPPFLAGS = -isystem $(shell $(PG_CONFIG) --includedir-server) -I$(srcdir)/c_shim -I$(srcdir)/worker
PG_CFLAGS = -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -pthread -MMD -MP
SHLIB_LINK = -ldl -pthread

# No bitcode: the library has nothing that a query's compiled plan could inline, and building it would need clang.
with_llvm = no

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
override with_llvm = no
-include $(OBJS:.o=.d)

else
# ---------------------------------------------------------------------------------------------------------------------
# What you call.

.DEFAULT_GOAL := all
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

-include sql/pieces.mk

EXTVERSION = $(shell sed -n "s/^default_version *= *'\([^']*\)'.*/\1/p" aidb.control 2>/dev/null)
SQL_PIECES = $(SQL_INSTALL) $(SQL_API)
SQL_SCRIPT = build/aidb--$(EXTVERSION).sql

# Asynchronous preemption is off because it steals latch wake-ups from the backend: docs/design/seam.md.
GO ?= go
GO_DEFAULTS = asyncpreemptoff=1
GO_LDFLAGS = -s -w -X runtime.godebugDefault=$(GO_DEFAULTS)
# Names are looked up by Go's own resolver and not by the C library's: a lookup of the latter cannot be given up, and holds a thread
# of the backend for as long as it hangs. It also leaves nothing but the bridge itself that waits for a C compiler.
GO_TAGS = netgo,osusergo
# What only a debugger reads is left out, because it is stripped in the end and takes a sixth of the time to make.
GO_FLAGS = -buildvcs=false -trimpath -tags $(GO_TAGS) -gcflags=all=-dwarf=false
GO_BUILD = CGO_ENABLED=1 $(GO) build $(GO_FLAGS)
# A position-independent program is compiled as the library is, so that the two share what is compiled already: on a new
# machine that is most of the time.
GO_RUN = CGO_ENABLED=1 $(GO) run $(GO_FLAGS) -buildmode=pie

pkglibdir = $(shell $(PG_CONFIG) --pkglibdir)
extensiondir = $(shell $(PG_CONFIG) --sharedir)/extension

.PHONY: all help c-library go-library script install uninstall packages test-packages demo cluster cluster-stop \
        test test-go test-server test-chaos test-container bench docs lint fuzz clean

all: c-library go-library script ## both libraries and the install script, in build/

help: ## this list
	@echo "aidb: LLM agents inside PostgreSQL. Targets:"
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "  %-16s%s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo "PG_CONFIG chooses the server (now $(PG_CONFIG))."

# PGXS keeps track of what is stale in the C part, go build in the Go part: both are asked every time.
c-library:
	@mkdir -p build/c_shim build/worker
	@$(MAKE) $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc)) -C build -f ../Makefile AIDB_PGXS=1 all-lib

go-library:
	@mkdir -p build
	$(GO_BUILD) -buildmode=c-shared -ldflags "$(GO_LDFLAGS)" -o build/aidb_go.so ./extension

# The pieces may say OR REPLACE, because upgrades replay them; an install must never replace what somebody else made
# under the same name, so it is taken out here.
script: aidb.control $(SQL_PIECES) sql/pieces.mk
	@test -n "$(EXTVERSION)" || { echo "aidb.control names no default_version" >&2; exit 1; }
	@mkdir -p build
	@cat $(SQL_PIECES) | sed 's/^CREATE OR REPLACE /CREATE /' > $(SQL_SCRIPT).new
	@if cmp -s $(SQL_SCRIPT).new $(SQL_SCRIPT); then rm $(SQL_SCRIPT).new; else mv $(SQL_SCRIPT).new $(SQL_SCRIPT); echo "made $(SQL_SCRIPT)"; fi

# install(1) unlinks before it writes: sessions that have the old libraries loaded keep them.
install: all ## put them where the server of PG_CONFIG looks (with sudo when that needs it)
	@lib="$(DESTDIR)$(pkglibdir)" ext="$(DESTDIR)$(extensiondir)"; \
	as=; for d in "$$lib" "$$ext"; do mkdir -p "$$d" 2>/dev/null && [ -w "$$d" ] || as=sudo; done; \
	[ -z "$$as" ] || command -v sudo >/dev/null || { echo "cannot write to $$lib and there is no sudo: make install as root" >&2; exit 1; }; \
	$$as install -d "$$lib" "$$ext"; \
	$$as install -m 755 build/aidb.so build/aidb_go.so "$$lib/"; \
	$$as install -m 644 aidb.control $(SQL_SCRIPT) $(wildcard build/aidb--*--*.sql) "$$ext/"; \
	echo "installed aidb $(EXTVERSION) into $$lib and $$ext"

uninstall: ## take them away again
	@lib="$(DESTDIR)$(pkglibdir)" ext="$(DESTDIR)$(extensiondir)"; \
	as=; [ -w "$$lib" ] && [ -w "$$ext" ] || as=sudo; \
	$$as rm -f "$$lib/aidb.so" "$$lib/aidb_go.so" "$$ext/aidb.control" "$$ext"/aidb--*.sql

packages: ## the Debian packages that building and testing need, installed where they are missing
	@MEANWHILE='$(GO_BUILD) -buildmode=pie ./extension ./tests/demo' tests/scripts/packages >&2

# and what single tests need besides: they are skipped where it cannot be installed
test-packages:
	@tests/scripts/packages --tests >&2

# Everything below needs a server and a compiler. A second make is called for the build, because PG_CONFIG may exist only
# once `packages` has run.
demo: packages ## watch an agent discover a database it has never seen and answer from it
	@echo 'building and installing aidb' >&2; $(MAKE) -s install >&2
	@$(GO_RUN) ./tests/demo

cluster: packages ## a scratch server with the extension for your own psql: eval "$(make cluster)"
	@echo 'building and installing aidb' >&2; $(MAKE) -s install >&2
	@mkdir -p build
	@$(GO_RUN) ./tests/cluster/cmd/scratch start build/cluster.env

cluster-stop: ## stop it and remove its files
	@$(GO_RUN) ./tests/cluster/cmd/scratch stop build/cluster.env

test: test-packages ## every test there is: Go units with the race detector, then everything against real servers
	@$(MAKE) -s install
	@$(GO_RUN) ./tests/cmd/gotest -server -summary build/test-summary \
	    -- -race ./extension/... -- -p 1 -count 1 -timeout 40m ./tests/...

test-go: ## the Go unit tests alone (no server needed)
	@$(GO_RUN) ./tests/cmd/gotest -- -race ./extension/... -- ./tests/architecture/...

test-server: test-packages ## the tests against real servers alone; RUN=regexp and PKG=./tests/x narrow them
	@$(MAKE) -s install
	@$(GO_RUN) ./tests/cmd/gotest -- -p 1 -count 1 -timeout 40m $(if $(RUN),-run '$(RUN)') $(or $(PKG),./tests/...)

test-chaos: packages ## kill workers, backends, postmasters and the model server under writing tasks, 200 times (CHAOS_KILLS)
	@$(MAKE) -s install
	@CHAOS_KILLS=$(or $(CHAOS_KILLS),200) $(GO_RUN) ./tests/cmd/gotest -- -v -count 1 -timeout 90m -run Chaos ./tests/tasks

test-container: ## the same promises against the image that the Dockerfile builds (needs a Docker engine)
	@$(GO_RUN) ./tests/cmd/gotest -- -v -count 1 -timeout 30m ./tests/container/...

docs: packages ## write the pages of docs/reference that come from the catalog
	@echo 'building and installing aidb' >&2; $(MAKE) -s install >&2
	@$(GO_RUN) ./tests/docs/cmd/generate docs/reference

bench: packages ## measure a conversation beside an ordinary program that does the same job, a tool call, one of an MCP server, durable decisions, the guard, and previews; BENCH=-quick is faster
	@echo 'building and installing aidb' >&2; $(MAKE) -s install >&2
	@$(GO_RUN) ./tests/bench/cmd/compare $(BENCH)
	@$(GO_RUN) ./tests/bench/toolcall $(filter -quick,$(BENCH))
	@$(GO_RUN) ./tests/bench/audit $(filter -quick,$(BENCH))
	@$(GO_RUN) ./tests/bench/guard
	@$(GO_RUN) ./tests/bench/actions $(filter -quick,$(BENCH))
	@$(GO_RUN) ./tests/bench/mcpcall $(filter -quick,$(BENCH))
	@$(GO_RUN) ./tests/bench/retention $(if $(filter -quick,$(BENCH)),-rows 100000)

lint: ## gofmt, go vet, the tree's own rules; golangci-lint too where it is installed
	@tests/scripts/lint

FUZZTIME ?= 20s
fuzz: ## run each fuzz test of the Go part for FUZZTIME
	@tests/scripts/fuzz $(FUZZTIME)

clean: ## remove what was built
	rm -rf build

endif
