#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Shows that the series is sound at every patch: the first patch alone, the first two, and so on,
# must each build and pass all of MIT's tests that the unpatched build passes. Long: each prefix is
# a build and a run of the tests (their results are kept, so it may be interrupted).
#   check_each_patch.sh [--only PATTERN]    (see krb5-check.sh)
#   FIRST=N                                 begin with the first N patches
#   KRB5_RELEASE=NAME                       the patches for bookworm or trixie (see fetch.sh)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mapfile -t patches < <("$here/series.py" names "$("$here/fetch.sh" --release)")

bad=()
for ((n = ${FIRST:-1}; n <= ${#patches[@]}; n++)); do
  echo "==== ${n} of ${#patches[@]}: up to ${patches[n - 1]}"
  KRB5_UPTO=$n "$here/krb5-check.sh" --variants 'unpatched patched' "$@" || bad+=("$n")
done
echo
if [ ${#bad[@]} -gt 0 ]; then
  echo "check_each_patch: worse than unpatched after patch ${bad[*]}"
  exit 1
fi
echo "check_each_patch: all ${#patches[@]} prefixes of the series are as good as the unpatched build"
