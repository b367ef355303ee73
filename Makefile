# SPDX-License-Identifier: Apache-2.0
# The front door. CMake and ninja build what is ours, krb5-patches/ builds krb5; this only calls
# them. Everything goes below build/; nothing is installed but Debian packages.

BUILD  := $(CURDIR)/build
CMAKE  := $(BUILD)/cmake
LOG    := $(BUILD)/log
JOBS   ?= $(shell nproc)
# Debian's own: a developer's PATH may put another python3 first, without Debian's pytest.
PYTHON ?= /usr/bin/python3
# The parts of `make test` may be chosen: make test TESTS='unit realm krb5'
TESTS  ?= unit realm krb5

CMAKE_FLAGS := -DMPCKDC_PLUGIN=ON -DKRB5_INSTALL_DIR=$(BUILD)/krb5/install \
  -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache

PROGRESS := $(CURDIR)/deploy/progress.sh
CONFIGURE = $(PROGRESS) 'configuring' $(LOG)/cmake.log \
  cmake -S . -B $(CMAKE) -G Ninja $(CMAKE_FLAGS) -DMPCKDC_TESTS=ON
export MPCKDC_BUILD := $(BUILD)
# ccache with precompiled headers; it trusts the compiler's list of what a file includes.
export CCACHE_SLOPPINESS := pch_defines,time_macros
export CCACHE_DEPEND := 1
export JOBS PYTHON

.DEFAULT_GOAL := help
.PHONY: help dependencies dependencies-test packages packages-check krb5 programs build demo demo-stop test \
  krb5-check krb5-check-servers test-fresh \
  bench bench-plots bench-network bench-distance bench-refresh bench-triples test-long storm soak dashboard sim fault \
  clients fuzz sanitize constant-time clean

help:
	@echo 'make demo        build what it runs, start a realm, log a user in, search for keys'
	@echo 'make demo-stop   stop the realm that `make demo` left running'
	@echo 'make test        build everything and run all tests'
	@echo
	@echo 'make packages    .deb files for Debian 12 and 13, each in its own chroot (root, 40 min)'
	@echo 'make packages-check  install them on five machines by deploy/README.md, word by word (root)'
	@echo
	@echo 'make programs    dependencies, patched krb5, mpc-server, mpc-admin, the KDC module'
	@echo 'make build       these, the tests, the benchmarks and the load tool'
	@echo 'make krb5        dependencies and the patched krb5 alone'
	@echo "make krb5-check  MIT's own tests on the patched krb5, stock and with remote keys"
	@echo "make krb5-check-servers  MIT's own scripts, each realm with three real servers (root, long)"
	@echo 'make test-fresh  `make demo` and `make test` in a bare Debian 12 chroot (root)'
	@echo 'make bench       throughput and latency of the engine, beside its floor and the paper (2 min)'
	@echo 'make bench-plots the same against batch size, as SVG and PNG in build/bench (3 min)'
	@echo 'make bench-network  AES on 1 Gb/s, with 0.13 ms, on 200 Mb/s with 15 ms (root, 4 min)'
	@echo 'make test-long   more random cases; servers, databases and tools killed at more moments; a bad night'
	@echo 'make bench-refresh  what a refresh of the shares and a rebuilt party cost (3 min)'
	@echo 'make bench-triples what a second triple is worth, each with a CPU quota (root, 5 min)'
	@echo 'make bench-distance logins, loopback to 30 ms and 100 Mb/s between the servers (root, 12 min)'
	@echo 'make storm       logins at a realm of 100,000 users, ours beside stock krb5kdc and the paper (25 min)'
	@echo 'make soak        two hours of logins while the realm is refreshed, rotated, killed, replaced, restored'
	@echo 'make dashboard   a storm as Prometheus sees it, drawn as the dashboard is (5 min)'
	@echo 'make sim         simulated realms under seeded faults: SEEDS=1000 FIRST=1; resumable'
	@echo 'make fault       servers and KDC killed, stopped, cut off, slowed under load (root, 12 min)'
	@echo 'make clients     MIT, Heimdal, Java, Go, Python, Kerby, SSSD, ssh, curl log in (root, 5 min)'
	@echo 'make fuzz        each parser under a fuzzer, SECONDS=60 each; --only and more by FUZZ= (long)'
	@echo 'make sanitize    the unit tests under SANITIZER=address,undefined, or thread (a whole build)'
	@echo 'make constant-time  secrets steer no branch and no address (valgrind), and no time'
	@echo 'make clean       remove build/ (stop the demo first)'
	@echo
	@echo 'JOBS=N limits parallel builds. Logs are in build/log.'

dependencies:
	@mkdir -p $(LOG)
	@deploy/install-packages.sh $(LOG)/packages.log

dependencies-test: dependencies
	@deploy/install-packages.sh $(LOG)/packages.log deploy/packages-test.txt

krb5: dependencies
	@krb5-patches/build.sh > $(LOG)/krb5-directory

# What a realm runs and nothing else. A folder that was configured for the tests stays so.
PROGRAMS := mpc-server mpc-admin mpc-kdb mpckdc_kdb_module
programs: krb5
	@$(PROGRESS) 'configuring' $(LOG)/cmake.log cmake -S . -B $(CMAKE) -G Ninja $(CMAKE_FLAGS) \
	  $(if $(wildcard $(CMAKE)/CMakeCache.txt),,-DMPCKDC_TESTS=OFF)
	@$(PROGRESS) 'building mpc-server, mpc-admin and the KDC module' $(LOG)/build.log \
	  ninja -C $(CMAKE) -j $(JOBS) $(PROGRAMS)

build: krb5 dependencies-test
	@$(CONFIGURE)
	@$(PROGRESS) 'building everything' $(LOG)/build.log ninja -C $(CMAKE) -j $(JOBS)

demo: programs
	@$(PYTHON) deploy/demo/demo.py

demo-stop:
	@$(PYTHON) deploy/demo/demo.py --stop

# Each part ends with its runner's own closing line.
test: build
	@deploy/run-tests.sh $(TESTS)

krb5-check: krb5 dependencies-test
	@krb5-patches/krb5-check.sh

# MIT's scripts on realms of three real servers each; kdc-plugin/tests/mit/README.md explains.
krb5-check-servers: programs dependencies-test
	@krb5-patches/krb5-check.sh --variants servers

test-fresh:
	@deploy/test-fresh.sh

# RELEASES=trixie for one; deploy/packages/README.md explains.
RELEASES ?= bookworm trixie
packages:
	@for release in $(RELEASES); do deploy/packages/build.sh $$release || exit; done

packages-check:
	@for release in $(RELEASES); do deploy/packages/check.sh $$release || exit; done

# The program alone; RelWithDebInfo, CMakeLists.txt's default, is optimised.
MPC_BENCH := $(CMAKE)/mpc-server/cmd/mpc-bench
.PHONY: bench-program
bench-program: krb5 dependencies-test
	@$(CONFIGURE)
	@$(PROGRESS) 'building mpc-bench' $(LOG)/build.log ninja -C $(CMAKE) -j $(JOBS) mpc-bench

bench: bench-program
	@mpc-server/bench/bench.sh $(MPC_BENCH) $(BUILD)/bench

bench-plots: bench-program
	@deploy/install-packages.sh $(LOG)/packages.log deploy/packages-plots.txt
	@$(PYTHON) mpc-server/bench/plots.py $(MPC_BENCH) $(BUILD)/bench

# NETWORK="--only wan --batch 65536" chooses; integration-tests/wire/README.md explains.
bench-network: bench-program
	@$(PROGRESS) 'building wire-relay' $(LOG)/build.log ninja -C $(CMAKE) -j $(JOBS) wire-relay
	@deploy/install-packages.sh $(LOG)/packages.log deploy/packages-plots.txt
	@$(PYTHON) integration-tests/wire/bench_network.py $(NETWORK)

# What make test draws fewer cases of (testing/long_tests.h), and realms (realm/long_tests.py).
LONG_UNIT  := cts_engine plugin_kdb_module plugin_kdb_closed plugin_kdb_rename hand_over proof_control lies bench_program garbled_any_bytes share_store
# Whose tests say that some of them are long.
LONG_REALM = $(shell grep -lE 'long_tests|MPCKDC_LONG' integration-tests/*/*_test.py)
space := $(subst ,, )
test-long: build
	@MPCKDC_LONG=1 ctest --test-dir $(CMAKE) --output-on-failure -j $(JOBS) \
	  -R '^($(subst $(space),|,$(LONG_UNIT)))_test'
	@MPCKDC_LONG=1 $(PYTHON) -m pytest -q -n 3 --dist loadfile --basetemp $(BUILD)/realm-tests \
	  $(LONG_REALM)

bench-refresh: build
	@$(PYTHON) integration-tests/storm/bench_refresh.py $(REFRESH)

# TRIPLES="--cores 0.3 --seconds 10 --runs 3"
bench-triples: build
	@$(PYTHON) integration-tests/storm/bench_triples.py $(TRIPLES)

# DISTANCE="--only far --type aes256-cts --idle 60"; integration-tests/wire/README.md explains.
bench-distance: build
	@$(PYTHON) integration-tests/wire/bench_distance.py $(DISTANCE)

# STORM="--users 2000 --seconds 5 --only jobs,stock" chooses; integration-tests/storm/README.md explains.
# The stock KDC is krb5 without our patches, which is built once.
storm: build
	@deploy/install-packages.sh $(LOG)/packages.log deploy/packages-plots.txt
	@krb5-patches/build.sh --stock > $(LOG)/krb5-stock-directory
	@$(PYTHON) integration-tests/storm/bench_storm.py $(STORM)

# SOAK="--hours 0.1 --users 2000 --rate 100", "--postgresql", "--break-something"; integration-tests/storm/README.md explains.
soak: build
	@deploy/install-packages.sh $(LOG)/packages.log deploy/packages-plots.txt
	@$(PYTHON) integration-tests/storm/soak.py $(SOAK)

# DASHBOARD="--users 5000 --seconds 40 --out FILE"
dashboard: build
	@deploy/install-packages.sh $(LOG)/packages.log deploy/packages-plots.txt
	@$(PYTHON) integration-tests/storm/watched_storm.py $(DASHBOARD)

# Seeds that are done are kept below build/sim, by commit and program: after Ctrl-C the same command
# goes on. FIRST= names the first seed, SIMFLAGS= more options of mpc-sim, STORE_RUNS= how often the
# real store meets a random fault, LIES= how often one server lies in a short computation.
SEEDS      ?= 1000
LIES       ?= 100000
FIRST      ?= 1
STORE_RUNS ?= 200
sim: build
	@mkdir -p $(BUILD)/sim
	@$(CMAKE)/mpc-server/sim/mpc-sim --seeds=$(SEEDS) --first=$(FIRST) --jobs=$(JOBS) \
	  --commit=$$(git describe --always --dirty 2>/dev/null || echo unknown) \
	  --state_dir=$(BUILD)/sim --json=$(BUILD)/sim/report.json $(SIMFLAGS)
	@$(CMAKE)/mpc-server/sim/mpc-sim --lies=$(LIES) --jobs=$(JOBS) > $(BUILD)/sim/lies.txt; \
	  status=$$?; tail -n 2 $(BUILD)/sim/lies.txt; exit $$status
	@MPCKDC_STORE_RUNS=$(STORE_RUNS) $(PROGRESS) 'the real store under faults' \
	  $(LOG)/store-faults.log $(CMAKE)/mpc-server/store/lmdb_fault_test

# FAULT="--case p0:kill --rate 20" chooses; integration-tests/README.md explains.
fault: build
	@$(PYTHON) integration-tests/fault/matrix.py $(FAULT)

# CLIENTS="--only MIT,Java --enctypes 18" chooses; integration-tests/clients/README.md explains.
clients: build
	@deploy/install-packages.sh $(LOG)/packages.log deploy/packages-clients.txt
	@krb5-patches/build.sh --stock > $(LOG)/krb5-stock-directory
	@$(PYTHON) integration-tests/clients/client_matrix.py $(CLIENTS) \
	  $(if $(CLIENTS),,--markdown integration-tests/clients/MATRIX.md) --json $(BUILD)/clients/matrix.json

# FUZZ="--only vote,proposal --keep --json FILE"; integration-tests/fuzz/README.md explains.
SECONDS ?= 60
fuzz: krb5 dependencies-test
	@deploy/install-packages.sh $(LOG)/packages.log deploy/packages-fuzz.txt
	@$(PROGRESS) 'building krb5 for fuzzing' $(LOG)/krb5-fuzz.log sh -c \
	  'krb5-patches/fuzz/build.sh $(BUILD)/krb5/source $(BUILD)/fuzz-krb5 > $(LOG)/krb5-fuzz-directory'
	@$(PROGRESS) 'configuring' $(LOG)/fuzz-cmake.log cmake -S . -B $(BUILD)/fuzz -G Ninja $(CMAKE_FLAGS) \
	  -DMPCKDC_TESTS=ON -DMPCKDC_FUZZ=ON -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 \
	  -DKRB5_FUZZ_DIR=$$(cat $(LOG)/krb5-fuzz-directory)
	@$(PROGRESS) 'building the fuzz targets' $(LOG)/fuzz-build.log ninja -C $(BUILD)/fuzz -j $(JOBS) fuzz-programs
	@MPCKDC_KRB5=$(BUILD)/krb5/install $(PYTHON) -B integration-tests/fuzz/fuzz.py $(BUILD)/fuzz \
	  --seconds $(SECONDS) $(FUZZ)

# TESTS_ONLY='^(agree|wire)' chooses; integration-tests/sanitize/README.md explains.
SANITIZER ?= address,undefined
sanitize: krb5 dependencies-test
	@SANITIZER=$(SANITIZER) TESTS_ONLY='$(TESTS_ONLY)' integration-tests/sanitize/run.sh

# Of the ordinary build: marked secrets under valgrind, and measured times, each with a control that leaks.
constant-time: krb5 dependencies-test
	@$(CONFIGURE)
	@$(PROGRESS) 'building the checks' $(LOG)/build.log ninja -C $(CMAKE) -j $(JOBS) \
	  constant_time_check proof_constant_time_check garble_constant_time_check timing_check
	@ctest --test-dir $(CMAKE) -C constant-time --output-on-failure -j $(JOBS) \
	  -R '^(constant_time|proof_constant_time|garble_constant_time|timing)_check_'

clean:
	@if [ -d $(BUILD)/demo ]; then $(PYTHON) deploy/demo/demo.py --stop; fi
	rm -rf $(BUILD)
