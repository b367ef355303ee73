#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The parts of `make test`; all of them run, and the worst result is the exit status.
#   run-tests.sh [unit] [realm] [krb5]
#     unit   C and C++ tests (ctest)
#     realm  whole realms on the loopback interface (pytest)
#     krb5   a quick choice of MIT's own tests on the patched tree, and of those with three real
#            servers; `make krb5-check` and `make krb5-check-servers` run them all
set -u
cd "$(dirname "$0")/.." || exit
build=${MPCKDC_BUILD:-$PWD/build}
python=${PYTHON:-/usr/bin/python3}
# Login, pre-auth, renewal, user-to-user, worker processes; all unit tests of libk5crypto; the shorter
# ones of our own with the test provider.
own='gate|proof|session_enctypes|through_realms|ticket_labels'
quick='^(tests/t_(general|renew|u2u|skew|referral|'$own')\.py|kdc/t_(workers|bigreply)\.py|unit:lib/crypto)'

# Of those with three real servers: keys as kadmin shows and takes them, and a replica (20 s).
quick_servers='^tests/t_(keydata|replica)\.py'

# Tests run beside each other, and a busy machine may make one miss a time limit, or a port be taken. So
# up to three programs, or files of pytest, that failed run once more, alone: what fails then has failed. Both runs are in the output. Only where all
# tests ran and some failed, which is what these exit codes say: a run that broke off has failed.
most_again=3
ctest_some_failed=8
pytest_some_failed=1
again() {  # HOW MANY failed
  [ "$1" -gt 0 ] && [ "$1" -le "$most_again" ] || return 1
  echo "== $1 failed beside others: once more, alone"
}

run_unit() {
  # Most of them start three parties of their own, which wait for each other, timers and the disk:
  # of the time that they take together they compute for less than half.
  local run=(ctest --test-dir "$build/cmake" --output-on-failure)
  "${run[@]}" -j "$((2 * ${JOBS:-$(nproc)}))" && return
  [ $? -eq $ctest_some_failed ] &&
    again "$(wc -l < "$build/cmake/Testing/Temporary/LastTestsFailed.log")" &&
    "${run[@]}" -j 1 --rerun-failed
}

run_realm() {
  # Four files at a time: most tests wait. A file's tests share a realm and stay together.
  local cache=$build/pytest-cache
  local run=("$python" -m pytest -o "cache_dir=$cache" --basetemp "$build/realm-tests" --durations 5 -q
    --color "$([ -t 1 ] && echo yes || echo no)")
  rm -rf "$cache"
  "${run[@]}" -n 4 --dist loadfile integration-tests && return
  [ $? -eq $pytest_some_failed ] || return
  local failed=$cache/v/cache/lastfailed
  [ -e "$failed" ] && again "$("$python" -c 'import json, sys; print(len({name.split("::")[0] for name in json.load(sys.stdin)}))' < "$failed")" &&
    "${run[@]}" -n 0 --last-failed --last-failed-no-failures none integration-tests
}

run_krb5() {
  local worse=0
  # The patches of each release on its source, without a build: seconds.
  "$python" -m pytest -q -p no:cacheprovider krb5-patches || worse=1
  krb5-patches/series.py check || worse=1
  krb5-patches/krb5-check.sh --fresh --variants 'patched provider' --only "$quick" || worse=1
  krb5-patches/krb5-check.sh --fresh --variants servers --only "$quick_servers" || worse=1
  return $worse
}

# Realms mostly wait, and MIT's tests mostly compute: where both are asked for they run beside each
# other, and what MIT's print comes after.
krb5_log=$build/log/krb5-tests.log
krb5_beside=
start_krb5() {
  mkdir -p "$build/log"
  (renice -n 5 -p "$BASHPID" > /dev/null; export JOBS=1; run_krb5) > "$krb5_log" 2>&1 &
  krb5_beside=$!
}
finish_krb5() {
  local status=0
  wait "$krb5_beside" || status=1
  cat "$krb5_log"
  return $status
}

names=${*:-unit realm krb5}
failed=
for name in $names; do
  echo "== test: $name"
  started=$SECONDS
  case $name,$names in
    realm,*realm*krb5*) start_krb5; run_realm ;;
    krb5,*) if [ -n "$krb5_beside" ]; then finish_krb5; else run_krb5; fi ;;
    unit,* | realm,*) "run_$name" ;;
    *) echo "no such part: $name" >&2; false ;;
  esac || failed="$failed $name"
  echo "== test: $name took $((SECONDS - started)) s"
done
if [ -n "$failed" ]; then
  echo "FAILED:$failed"
  exit 1
fi
echo 'all tests passed'
