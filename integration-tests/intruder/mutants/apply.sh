#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copies sources and applies every mutant to the copies: control builds compile them in place of the
# originals. A mutant that does not apply as it stands is an error.
#   apply.sh SOURCE TARGET FILE...     FILEs: relative to SOURCE, as the mutants name them
set -euo pipefail
mutants=$(cd "$(dirname "$0")" && pwd)
source=$1 target=$2
shift 2
rm -rf "$target"
for file in "$@"; do
  mkdir -p "$target/$(dirname "$file")"
  cp "$source/$file" "$target/$file"
done
for mutant in "$mutants"/*.patch; do
  if ! patch -d "$target" -p1 -s -F0 --no-backup-if-mismatch < "$mutant"; then
    echo "$mutant no longer applies. Write it again for the source as it is now: it has to drop" >&2
    echo "one defence, and integration-tests/intruder has to see its attack succeed." >&2
    exit 1
  fi
done
