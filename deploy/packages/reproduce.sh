#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the packages of one release a second time, in a folder of another name and without the compiler cache, and
# compares the bytes of every .deb and of the source packages with build/packages/RELEASE. As root.
#   reproduce.sh RELEASE [krb5] [mpc-kdc]
# The same variables as build.sh. Needs as long as a build from nothing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
release=${1:?bookworm or trixie}
shift
parts=${*:-krb5 mpc-kdc}
build=${MPCKDC_BUILD:-$here/../../build}/packages
first=$build/$release second=$build/$release-again

# The second build of our packages links the first build's krb5, as the first did.
build_again() {
  if [[ $parts != *krb5* ]]; then
    mkdir -p "$second"
    rm -f "$second"/*+mpckdc*.deb
    cp "$first"/*+mpckdc*.deb "$first/krb5.built" "$second"
  fi
  rm -f "$second/mpc-kdc.built"
  [[ $parts != *krb5* ]] || rm -f "$second/krb5.built"
  # shellcheck disable=SC2086  # words
  CCACHE_DISABLE=1 BUILD_NAME=again "$here/build.sh" "$release" $parts
}

main() {
  local different=0 same=0 part pattern file
  build_again
  for part in $parts; do
    cmp -s "$first/$part.built" "$second/$part.built" || {
      echo "$release: $first has $part of another source: make packages RELEASES=$release" >&2
      exit 1
    }
    case $part in krb5) pattern='*+mpckdc*' ;; mpc-kdc) pattern='mpc-*_* login-storm*_*' ;; esac
    # shellcheck disable=SC2086
    for file in $(cd "$second" && ls $pattern); do
      case $file in *.buildinfo | *.changes) continue ;; esac  # they name the machine and its packages
      if cmp "$first/$file" "$second/$file"; then same=$((same + 1)); else different=$((different + 1)); fi
    done
  done
  echo "$release: $same files the same, $different different"
  [ "$different" = 0 ] && [ "$same" -gt 0 ]
}

main; exit  # on one line: the script may be edited while it runs
