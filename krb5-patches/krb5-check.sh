#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs MIT's own tests on three builds of krb5 and compares:
#   unpatched   what Debian ships
#   patched     all patches, no provider: must behave as stock
#   provider    all patches, and every long-term key remote; the test provider keeps the keys and
#               delays every operation by 10 ms
#   servers     all patches, mpc.so around db2 and klmdb, and three mpc-servers for every realm of a
#               script; only if it is named (make krb5-check-servers)
# A test which passes unpatched must pass in the others. Where it cannot with real servers, the list
# in kdc-plugin/tests/mit says how and why. Prints a table and counts; the exit status is 1 if
# anything got worse.
#
#   krb5-check.sh [--only PATTERN] [--fresh] [--variants "unpatched patched provider servers"]
#     --only PATTERN   only tests whose path contains PATTERN (a regular expression)
#     --fresh          forget results of earlier runs
#
# Results are kept beside each build, whose directory's name depends on all that went into it, so an
# interrupted check continues where it stopped. Failed tests are run again, except the unpatched.
# Tests write into the tree of their variant, so only one check uses it at a time.
#   BUILD_DIR=DIR, KRB5_SOURCE=DIR   as for build.sh
#   TEST_TIMEOUT=SECONDS             for one test (default 900)
#   KRB5_RELEASE=NAME                bookworm or trixie: as for build.sh
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
repository=$(dirname "$here")
build=${BUILD_DIR:-${MPCKDC_BUILD:-$repository/build}}
programs=$build/cmake
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

# Keeps the build $1 for variant $2 until this check ends. A lock of the kernel's: it ends with us.
lock() {
  local file=$1/krb5-check-$2.lock
  case $2 in
    unpatched) exec 5>> "$file" && flock -n 5 ;;
    patched) exec 6>> "$file" && flock -n 6 ;;
    provider) exec 7>> "$file" && flock -n 7 ;;
    servers) exec 8>> "$file" && flock -n 8 ;;
  esac || {
    say "krb5-check: another krb5-check runs variant $2 in $1"
    say "  (process $(tail -n 1 "$file" 2> /dev/null)). Wait until it ends, or end it; or use another BUILD_DIR."
    exit 1
  }
  echo $$ >> "$file"
}

# Without the locks: what a test leaves behind must not keep them.
unlocked() { "$@" 5>&- 6>&- 7>&- 8>&-; }

# Builds all test programs of a tree without running any test. Rules that inspect a test's output
# fail here, since there is none.
build_test_programs() {
  local src=$1
  [ ! -e "$src/.test-programs" ] || return 0
  say "krb5-check: building test programs in $src"
  unlocked make -C "$src" -k -j "$(nproc)" check RUNPYTEST=true RUN_TEST=true RUNTEST=true \
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

# What the results with real servers depend on, besides the tree.
# (What the list says of a script is in listed().)
servers_fingerprint() {
  sha256sum "$programs"/kdc-plugin/kdb-module/mpc.so "$programs"/mpc-server/cmd/mpc-{server,admin} \
    "$repository"/kdc-plugin/tests/mit/{counts,expected,k5test,real_servers,realms_with_servers}.py \
    "$repository"/kdc-plugin/tests/mit/{t_*.py,clock_ahead.c} | sha256sum | cut -c1-16
}

# Makes $2 a copy of the built tree $1 whose scripts get realms with real servers. Module and
# k5test are links to what was built last.
make_servers_tree() {
  local from=$1 to=$2
  [ -e "$programs/kdc-plugin/kdb-module/mpc.so" ] || { say 'krb5-check: `make programs` first'; return 1; }
  [ ! -e "$to/complete" ] || return 0
  say "krb5-check: making a tree for real servers in $to"
  rm -rf "$to"
  mkdir -p "$to/source"
  cp -a "$from" "$to/source/src"
  ln -s "$programs/kdc-plugin/kdb-module/mpc.so" "$to/source/src/plugins/kdb/mpc.so"
  mv "$to/source/src/util/k5test.py" "$to/source/src/util/k5test_mit.py"
  ln -s "$repository/kdc-plugin/tests/mit/k5test.py" "$to/source/src/util/k5test.py"
  ln -s "$repository"/kdc-plugin/tests/mit/t_*.py "$to/source/src/tests/"
  touch "$to/complete"
}

declare -A src results
wanted() { [[ " $variants " == *" $1 "* ]]; }

# The patched tree is locked for its own tests, and while anything is made in it or of it.
lock_patched() {
  wanted patched || [ ! -e "${src[patched]}/.test-programs" ] ||
    { wanted provider && [ ! -e "$2/complete" ]; } || { wanted servers && [ ! -e "$1/servers/complete" ]; } ||
    return 0
  lock "$1" patched
}

prepare() {
  local dir patched provider
  if wanted unpatched; then
    dir=$("$here/build.sh" --stock)
    lock "$dir" unpatched
    src[unpatched]=$dir/source/src results[unpatched]=$dir/check
    build_test_programs "${src[unpatched]}"
  fi
  patched=$("$here/build.sh")
  provider=$patched/provider-$(provider_fingerprint)
  src[patched]=$patched/source/src results[patched]=$patched/check
  lock_patched "$patched" "$provider"
  ! wanted provider || lock "$patched" provider
  ! wanted servers || lock "$patched" servers
  build_test_programs "${src[patched]}"
  # A build of the first patches alone may lack what the provider needs.
  if wanted provider; then
    make_provider_tree "${src[patched]}" "$provider"
    src[provider]=$provider/source/src results[provider]=$provider/check
  fi
  if wanted servers; then
    dir=$patched/servers
    make_servers_tree "${src[patched]}" "$dir"
    src[servers]=$dir/source/src results[servers]=$dir/check-$(servers_fingerprint)
    export MPCKDC_REPOSITORY=$repository MPCKDC_BUILD=$build
    gcc -O2 -Wall -Wextra -Werror -fPIC -shared -o "$dir/clock_ahead.so" \
      "$repository/kdc-plugin/tests/mit/clock_ahead.c"
    export MPCKDC_CLOCK_AHEAD_LIBRARY=$dir/clock_ahead.so
    export MPCKDC_KEPT_CERTIFICATES=$dir/certificates-3
    mkdir -p "$MPCKDC_KEPT_CERTIFICATES"
  fi
  # From here on nobody writes there but its own tests.
  wanted patched || exec 6>&-
}

# ---- Tests ---------------------------------------------------------------------------------------

# The tests of variant $1, one a line: paths of scripts and "unit:DIR".
list_tests() {
  local dir
  {
    # (lib/krad/t_daemon.py is no script of k5test, but a server for a C test.)
    (cd "${src[$1]}" && find . -name 't_*.py' -exec grep -lw k5test {} + | sed 's|^\./||' | sort)
    if [ "$1" != provider ] && [ "$1" != servers ]; then
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
  local flags='--net --pid --mount-proc --fork --kill-child'
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

# What the list for real servers says of test $1.
listed() { $PYTHON -B "$repository/kdc-plugin/tests/mit/expected.py" "$1" | sha256sum; }

# The result of test $2 of variant $1: pass, fail, skip (all or the rest of it cannot run here),
# differs (as the list for real servers says), alone (passes, and asks no server, as the list says), or
# "-" if it has not run.
result() {
  local file=${results[$1]:-/nonexistent}/${2//\//__}
  if [ "$1" = servers ] && [ "$(listed "$2")" != "$(cat "$file.listed" 2> /dev/null)" ]; then
    echo -
  elif [ -e "$file.result" ]; then
    cat "$file.result"
  else
    echo -
  fi
}

# What a test that ended well shows in its output $1.
verdict() {
  if grep -q '^\*\*\* Difference:' "$1"; then
    echo differs
  elif grep -q '^\*\*\* Skipping:' "$1"; then
    echo skip
  elif grep -q '^\*\*\* Servers: none asked' "$1"; then
    echo alone
  else
    echo pass
  fi
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
      *:pass | *:skip | *:differs | *:alone | unpatched:fail) continue ;;
    esac
    file=${results[$variant]}/${test//\//__}
    start=$SECONDS
    [ "$variant" != servers ] || listed "$test" > "$file.listed"
    if unlocked run_up_to "$tries" "${src[$variant]}" "$test" > "$file.log" 2>&1 < /dev/null; then
      verdict=$(verdict "$file.log")
    else
      verdict=fail
    fi
    echo $verdict > "$file.result"
    printf '%-9s  %-7s  %4ds  %s\n' "$variant" $verdict $((SECONDS - start)) "$test" >&2
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
  local test u r mark line regressions=0 variant
  declare -A count=()
  printf '\n%-46s' test
  for variant in $variants; do printf '%-10s ' "$variant"; done
  echo
  for test in $(for variant in $variants; do list_tests "$variant"; done | sort -u); do
    u=$(result unpatched "$test")
    mark='' line=''
    for variant in $variants; do
      r=$(result "$variant" "$test")
      line+=$(printf '%-10s ' "$r")
      count[$variant $r]=$((${count[$variant $r]:-0} + 1))
      [ "$variant" != unpatched ] || continue
      # Tests which only patched builds have must pass there.
      case $u:$r in pass:fail | -:fail | pass:skip) mark='  <-- worse' ;; esac
    done
    [ -z "$mark" ] || regressions=$((regressions + 1))
    printf '%-46s%s%s\n' "$test" "$line" "$mark"
  done
  echo
  for variant in $variants; do
    printf '%-10s %3d passed, %d failed, %d skipped (in whole or part)' "$variant:" \
      "${count[$variant pass]:-0}" "${count[$variant fail]:-0}" "${count[$variant skip]:-0}"
    [ "$variant" != servers ] ||
      printf ', %d differ as kdc-plugin/tests/mit says, %d ask no server' \
        "${count[$variant differs]:-0}" "${count[$variant alone]:-0}"
    echo
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
  if [[ " $variants " == *" servers "* ]] &&
     [ "$("$here/fetch.sh" --release)" != "$(env -u KRB5_RELEASE "$here/fetch.sh" --release)" ]; then
    say "krb5-check: mpc.so is built for this machine's krb5; no servers with that of another release"
    exit 2
  fi
  prepare
  run_all
  report
}

main
exit
