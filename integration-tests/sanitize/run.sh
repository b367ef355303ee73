#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests under a sanitizer, in a build of their own; `make sanitize` calls this.
#
#   SANITIZER=address,undefined|thread   TESTS_ONLY=regex of ctest   TARGETS='ninja targets', all if empty
#   PARTS='unit plugin realm'            REALM_TESTS='login_test.py ...', of integration-tests/realm
#
# unit: ctest. Left out: what measures the memory or the time of a process, of which a sanitizer takes several
# times as much. plugin and realm (not with thread: krb5kdc runs requests on fibers, of which it knows nothing):
# our modules in krb5's own programs, and whole realms of sanitized servers.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${MPCKDC_BUILD:-$PWD/build}
sanitizer=${SANITIZER:-address,undefined}
folder=$build/sanitize-${sanitizer%%,*}
here=$PWD/integration-tests/sanitize
parts=${PARTS:-unit plugin realm}
if [ "$sanitizer" = thread ] || [ -n "${TESTS_ONLY:-}" ]; then parts=unit; fi

# plugin_kdb_.*: the part plugin runs them.
left_out='plugin_kdb_.*|plugin_mit_list|layers|limits|.*_manual|.*_constant_time_check.*|constant_time_check.*'
left_out+='|bench_program|engine_memory|garbled_memory|garble_view_control|share_store_bench|fuzz_replay_krb5'

deploy/progress.sh "configuring ($sanitizer)" "$build/log/sanitize-cmake.log" \
  cmake -S . -B "$folder" -G Ninja -DMPCKDC_PLUGIN=ON -DKRB5_INSTALL_DIR="$build/krb5/install" -DMPCKDC_TESTS=ON \
  -DMPCKDC_SANITIZE="$sanitizer" -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
# shellcheck disable=SC2086 # targets are words
deploy/progress.sh "building ($sanitizer)" "$build/log/sanitize-build.log" \
  ninja -C "$folder" -j "${JOBS:-$(nproc)}" ${TARGETS:-}

# Not detect_stack_use_after_return: GCC 12 then places vectors on the stack where they are not aligned. The order:
# lmdb_fault_test loads its faults before all else.
export ASAN_OPTIONS=strict_string_checks=1:verify_asan_link_order=0:suppressions=$here/address.txt
export LSAN_OPTIONS=suppressions=$here/leak.txt
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:suppressions=$here/thread.txt
# These read the whole process's memory, of which a sanitizer has terabytes.
GTEST_FILTER=-RefreshTest.AMemoryImageOfALaterEpochDoesNotUndoTheRefresh:*HandOverTest.AMemoryImageOfLater*
# How many records a message names goes by how quick a batch was.
GTEST_FILTER+=:*HandOverTest.AStoreThatLacksSomeIsNamedManyAtOnce*
# Sanitizers make mlock() do nothing.
GTEST_FILTER+=:SecretTest.PagesAreLockedNotDumpedAndWipedOnFork:SecretDeathTest.MemoryThatCannotBeLockedIsCounted
# 4000 long tickets by their deadlines, for which three servers under this sanitizer are too slow.
if [ "$sanitizer" = thread ]; then
  GTEST_FILTER+=:ThreeServersTest.ThousandsOfLongTicketsEndNoStream
  # One to three minutes each, of one thread at a time that computes; their garbled halves run.
  GTEST_FILTER+=:*CtsLoginTest.*InRounds*
  # They go by what else a batch takes meanwhile, or by what is done while keys are verified.
  GTEST_FILTER+=:VoteTest.TooLargeABatch:KeyProtocolTest.LoginsTakeTurnsWithALongVerification
  # It looks at what is left on the stack, where this sanitizer leaves what is its own.
  GTEST_FILTER+=:CircuitProofTest.AProofLeavesNothingOnTheStack
  # One thread that goes from fiber to fiber, of which this sanitizer is not told.
  left_out+='|sim_.*|lies'
fi
export GTEST_FILTER
# Who does not find what was planted finds nothing.
controls=(sanitize_control)
if [ "$sanitizer" = thread ]; then controls+=(sanitize_rpc_control); fi
if [ -n "${TARGETS:-}" ]; then ninja -C "$folder" "${controls[@]}" > "$build/log/sanitize-control.log"; fi
ctest --test-dir "$folder" --output-on-failure -R '^sanitize_control_'

unit() {
  ctest --test-dir "$folder" --output-on-failure -j "${JOBS:-$(nproc)}" --timeout 1200 \
    -R "${TESTS_ONLY:-.}" -E "^(sanitize_control_.*|$left_out)(_test)?(_semi_honest)?$"
}

# MIT's programs are not sanitized: the libraries come first into each. What they leave behind when they end is
# theirs, and tests that kill them have a library of their own besides. Reports are looked for in files, whatever
# became of the tests.
in_krb5() {
  local reports=$folder/reports asan
  asan=$(gcc -print-file-name=libasan.so)
  rm -rf "$reports"
  mkdir -p "$reports"
  gcc -O1 -Wall -Wextra -shared -fPIC -o "$folder/reports.so" "$here/reports.c"
  "$here/wrap_krb5.sh" "$build/krb5/install" "$folder/krb5" "$folder/reports.so:$asan"
  local settings=(MPCKDC_KRB5="$folder/krb5" MPCKDC_CMAKE="$folder" SANITIZE_REPORTS="$reports"
    LD_PRELOAD="$folder/reports.so" ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0")
  for bug in heap overflow; do
    env "${settings[@]}" "$folder/sanitize_control" "$bug" > "$folder/control.out" 2>&1 || true
  done
  if [ "$(grep -lE 'heap-buffer-overflow|signed integer overflow' "$reports"/* | wc -l)" != 2 ]; then
    echo "the planted bugs were not reported in $reports"
    return 1
  fi
  rm "$reports"/*
  local status=0
  env "${settings[@]}" "${PYTHON:-/usr/bin/python3}" -B -m pytest -q -p no:cacheprovider \
    -n "${JOBS:-$(nproc)}" --dist loadfile "$@" || status=1
  local expected
  expected=$(grep -v '^\(#.*\)\?$' "$here/expected.txt")
  for report in "$reports"/*; do
    [ -e "$report" ] || continue
    if grep -qE "$expected" "$report"; then continue; fi
    echo "== $report"
    cat "$report"
    status=1
  done
  return $status
}
plugin() { in_krb5 kdc-plugin/tests/*_test.py; }
realm() {
  local tests
  read -ra tests <<< "${REALM_TESTS:-login_test.py admin_test.py}"
  in_krb5 "${tests[@]/#/integration-tests/realm/}"
}

status=0
for part in $parts; do
  echo "== $part ($sanitizer)"
  "$part" || status=1
done
exit $status
