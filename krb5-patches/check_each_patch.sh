#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Shows that the series is sound at every patch: the first patch alone, the first two, and so on,
# must each build and pass all of MIT's tests that the unpatched build passes. Long: each prefix is
# a build and a run of the tests (their results are kept, so it may be interrupted).
#   check_each_patch.sh [--only PATTERN]    (see krb5-check.sh)
#   FIRST=N                                 begin with the first N patches (counted; numbers have gaps)
#   KRB5_RELEASE=NAME                       the patches for bookworm or trixie (see fetch.sh)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mapfile -t patches < <("$here/series.py" names "$("$here/fetch.sh" --release)")

first=${FIRST:-1}
if ((first < 1 || first > ${#patches[@]})); then
  echo "check_each_patch: FIRST=$first, but there are patches 1 to ${#patches[@]} (counted, not by their numbers)" >&2
  exit 2
fi

bad=()
for ((n = first; n <= ${#patches[@]}; n++)); do
  echo "==== ${n} of ${#patches[@]}: up to ${patches[n - 1]}"
  KRB5_UPTO=$n "$here/krb5-check.sh" --variants 'unpatched patched' "$@" || bad+=("$n")
done
echo
if [ ${#bad[@]} -gt 0 ]; then
  echo "check_each_patch: worse than unpatched after patch ${bad[*]}"
  exit 1
fi
echo "check_each_patch: with the first $first to ${#patches[@]} patches krb5 is as good as the unpatched build"
