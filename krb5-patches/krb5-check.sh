#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs MIT's own tests on three builds of krb5 and compares:
#   unpatched   what Debian ships
#   patched     all patches, no provider: must behave as stock
#   provider    all patches, and every long-term key remote; the test provider keeps the keys and
#               delays every operation by 10 ms
# A test which passes unpatched must pass in the other two. Prints a table and counts; the exit
# status is 1 if anything got worse.
#
#   krb5-check.sh [--only PATTERN] [--fresh] [--variants "unpatched patched provider"]
#     --only PATTERN   only tests whose path contains PATTERN (a regular expression)
#     --fresh          forget results of earlier runs
#
# Results are kept beside each build, whose directory's name depends on all that went into it, so an
# interrupted check continues where it stopped. Failed tests are run again, except the unpatched.
#   BUILD_DIR=DIR, KRB5_SOURCE=DIR   as for build.sh
#   TEST_TIMEOUT=SECONDS             for one test (default 900)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
timeout_seconds=${TEST_TIMEOUT:-900}

# k5test uses what `python3` it finds; Debian's is the one krb5 is tested with.
export PATH=/usr/bin:/bin:/usr/sbin:/sbin
unset PYTHONHOME PYTHONPATH
readonly PYTHON=/usr/bin/python3

# Directories whose C unit tests are run too. They have no KDC, so the provider changes nothing.
readonly UNIT_DIRS='lib/crypto/crypto_tests lib/krb5/asn.1 lib/krb5/krb tests/asn.1 kdc'

say() { echo "$*" >&2; }

only='' fresh=no variants='unpatched patched provider'
while [ $# -gt 0 ]; do
  case $1 in
    --only) only=${2:?--only needs a pattern}; shift ;;
    --fresh) fresh=yes ;;
    --variants) variants=${2:?--variants needs a list}; shift ;;
    *) sed -n '/^#   krb5-check.sh/,/^#     --fresh/s/^# *//p' "$0" >&2; exit 2 ;;
  esac
  shift
done

# ---- Trees ---------------------------------------------------------------------------------------

# Builds all test programs of a tree without running any test. Rules that inspect a test's output
# fail here, since there is none.
build_test_programs() {
  local src=$1
  [ ! -e "$src/.test-programs" ] || return 0
  say "krb5-check: building test programs in $src"
  make -C "$src" -k -j "$(nproc)" check RUNPYTEST=true RUN_TEST=true RUNTEST=true \
    > "$src/../../log/test-programs.log" 2>&1 || true
  [ -e "$src/runenv.py" ] || { say "krb5-check: no runenv.py in $src"; return 1; }
  touch "$src/.test-programs"
}

provider_fingerprint() { cat "$here"/testprovider/*.{c,h,py} | sha256sum | cut -c1-16; }

# Compiles the test provider against the tree $1 into the file $2.
build_provider() {
  gcc -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror -fPIC -shared -I"$1/include" -o "$2" \
    "$here"/testprovider/*.c -lcrypto -lpthread
}

# Makes $2 a copy of the built tree $1 in which every KDB module is wrapped, and adds our own scripts
# for the provider. (k5test wants scripts to be inside the tree.)
make_provider_tree() {
  local from=$1 to=$2 module target
  [ ! -e "$to/complete" ] || return 0
  say "krb5-check: making a tree with the test provider in $to"
  rm -rf "$to"
  mkdir -p "$to/source"
  cp -a "$from" "$to/source/src"
  build_provider "$from" "$to/remotetest.so"
  cd "$to/source/src/plugins/kdb"
  mkdir wrapped
  for module in db2.so klmdb.so kldap.so test.so; do
    [ -e "$module" ] || continue
    target=$(readlink -f "$module")
    rm "$module"
    cp "$target" "wrapped/$module"
    cp "$to/remotetest.so" "$module"
  done
  cd "$here"
  cp testprovider/*.py "$to/source/src/tests/"
  touch "$to/complete"
}

declare -A src results
prepare() {
  local dir patched
  if [[ " $variants " == *" unpatched "* ]]; then
    dir=$("$here/build.sh" --stock)
    src[unpatched]=$dir/source/src results[unpatched]=$dir/check
    build_test_programs "${src[unpatched]}"
  fi
  patched=$("$here/build.sh")
  src[patched]=$patched/source/src results[patched]=$patched/check
  build_test_programs "${src[patched]}"
  # A build of the first patches alone may lack what the provider needs.
  [[ " $variants " == *" provider "* ]] || return 0
  dir=$patched/provider-$(provider_fingerprint)
  make_provider_tree "${src[patched]}" "$dir"
  src[provider]=$dir/source/src results[provider]=$dir/check
}

# ---- Tests ---------------------------------------------------------------------------------------

# The tests of variant $1, one a line: paths of scripts and "unit:DIR".
list_tests() {
  local dir
  {
    # (lib/krad/t_daemon.py is no script of k5test, but a server for a C test.)
    (cd "${src[$1]}" && find . -name 't_*.py' -exec grep -lw k5test {} + | sed 's|^\./||' | sort)
    if [ "$1" != provider ]; then
      for dir in $UNIT_DIRS; do echo "unit:$dir"; done
    fi
  } | grep -E -- "${only:-.}" || true
}

# Runs test $2 in the tree $1 with all output on stdout.
run_test() {
  local tree=$1 test=$2
  case $test in
    unit:*)
      make -C "$tree/${test#unit:}" check RUNPYTEST=true
      ;;
    *)
      cd "$tree/$(dirname "$test")"
      PYTHONPATH=$tree/util timeout "$timeout_seconds" $PYTHON "$(basename "$test")"
      ;;
  esac
}

# Namespaces for one test: all realms of k5test use the same ports, and a test that is killed leaves
# its daemons behind. Empty if this machine gives none.
isolation() {
  local flags='--net --pid --fork --kill-child'
  [ "$(id -u)" = 0 ] || flags="--map-root-user $flags"
  # shellcheck disable=SC2086 # flags are words
  if unshare $flags true 2> /dev/null && command -v ip > /dev/null; then echo "unshare $flags"; fi
}

# kpropd wants an address that is no loopback address; this one is for documentation. Process ids
# begin at that of this shell: t_otp.py names files in /tmp by them, and a second test beside it in
# another namespace would have the same.
run_isolated() {
  if [ -z "$isolation" ]; then
    run_test "$@"
    return
  fi
  FIRST_PID=$BASHPID $isolation bash -uo pipefail -c '
    ip link set lo up && ip addr add 192.0.2.1/32 dev lo || exit 1
    echo "$FIRST_PID" 2> /dev/null > /proc/sys/kernel/ns_last_pid || true
    run_test "$@"' - "$@"
}

# The result of test $2 of variant $1: pass, fail, skip (all or the rest of it cannot run here), or
# "-" if it has not run.
result() {
  local file=${results[$1]:-/nonexistent}/${2//\//__}
  if [ -e "$file.result" ]; then cat "$file.result"; else echo -; fi
}

# Runs a test until it passes, at most $1 times.
run_up_to() {
  local try
  for ((try = 0; try < $1; try++)); do
    if run_isolated "$2" "$3"; then return 0; fi
  done
  return 1
}

run_variant() {
  local variant=$1 test file verdict start tries=1
  # Some of MIT's tests may fail now and then. What passes unpatched at all has to pass.
  [ "$variant" != unpatched ] || tries=3
  mkdir -p "${results[$variant]}"
  [ "$fresh" = no ] || rm -f "${results[$variant]}"/*.result
  for test in $(list_tests "$variant"); do
    case $variant:$(result "$variant" "$test") in
      *:pass | *:skip | unpatched:fail) continue ;;
    esac
    file=${results[$variant]}/${test//\//__}
    start=$SECONDS
    if run_up_to "$tries" "${src[$variant]}" "$test" > "$file.log" 2>&1 < /dev/null; then
      verdict=pass
      if grep -q '^\*\*\* Skipping:' "$file.log"; then verdict=skip; fi
    else
      verdict=fail
    fi
    echo $verdict > "$file.result"
    printf '%-9s  %-4s  %4ds  %s\n' "$variant" $verdict $((SECONDS - start)) "$test" >&2
  done
}

# Two variants at a time if tests do not get into each other's way.
run_all() {
  local variant running=0
  isolation=$(isolation)
  if [ -z "$isolation" ]; then
    say 'krb5-check: no namespaces for tests here, so one build after the other'
    for variant in $variants; do run_variant "$variant"; done
    return
  fi
  export timeout_seconds PYTHON
  export -f run_test
  for variant in $variants; do
    if [ "$running" -ge 2 ]; then wait -n; fi
    running=$((running + 1))
    run_variant "$variant" &
  done
  wait
}

# ---- Report --------------------------------------------------------------------------------------

report() {
  local test u p r mark regressions=0 variant
  declare -A count=()
  printf '\n%-46s %-10s %-10s %-10s\n' test unpatched patched provider
  for test in $(for variant in $variants; do list_tests "$variant"; done | sort -u); do
    u=$(result unpatched "$test") p=$(result patched "$test") r=$(result provider "$test")
    mark=''
    # Tests which only patched builds have must pass there.
    if [ "$u" = pass ] || [ "$u" = - ]; then
      for verdict in "$p" "$r"; do
        if [ "$verdict" = fail ]; then mark='  <-- worse'; fi
      done
    fi
    if [ "$u" = pass ] && { [ "$p" = skip ] || [ "$r" = skip ]; }; then mark='  <-- worse'; fi
    [ -z "$mark" ] || regressions=$((regressions + 1))
    printf '%-46s %-10s %-10s %-10s%s\n' "$test" "$u" "$p" "$r" "$mark"
    for variant in "unpatched $u" "patched $p" "provider $r"; do
      count[$variant]=$((${count[$variant]:-0} + 1))
    done
  done
  echo
  for variant in $variants; do
    printf '%-10s %3d passed, %d failed, %d skipped (in whole or part)\n' "$variant:" \
      "${count[$variant pass]:-0}" "${count[$variant fail]:-0}" "${count[$variant skip]:-0}"
  done
  for variant in $variants; do
    if [ "${count[$variant fail]:-0}" -gt 0 ]; then
      echo "logs of failed tests ($variant): ${results[$variant]}/*.log"
    fi
  done
  echo "worse than unpatched: $regressions"
  [ "$regressions" = 0 ]
}

main() {
  prepare
  run_all
  report
}

main
exit
