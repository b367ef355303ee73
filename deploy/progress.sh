#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs one long step with its output in a log, shows that it is alive, and on failure shows the
# log's end.
#   progress.sh TITLE LOG COMMAND [ARGUMENT...]
# On a terminal one line counts the seconds; elsewhere a line comes every 30 seconds.
set -u
title=$1 log=$2
shift 2
mkdir -p "$(dirname "$log")"
log=$(cd "$(dirname "$log")" && pwd)/$(basename "$log")
start=$SECONDS

"$@" >"$log" 2>&1 </dev/null &
pid=$!
trap 'kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; exit 130' INT TERM

# The log's last words: ninja's "[17/240] ..." or make's current file.
last_line() { tail -c 400 "$log" 2>/dev/null | tr '\r' '\n' | grep -v '^ *$' | tail -n 1 | cut -c1-60; }

shown=$start
while kill -0 "$pid" 2>/dev/null; do
  sleep 0.2
  if [ -t 1 ]; then
    printf '\r\033[K%s: %d s  %s' "$title" $((SECONDS - start)) "$(last_line)"
  elif [ $((SECONDS - shown)) -ge 30 ]; then
    shown=$SECONDS
    printf '%s: %d s so far  %s\n' "$title" $((SECONDS - start)) "$(last_line)"
  fi
done
wait "$pid"
status=$?
[ -t 1 ] && printf '\r\033[K'
if [ "$status" != 0 ]; then
  echo "$title: FAILED after $((SECONDS - start)) s (exit $status). End of $log:"
  tail -n 40 "$log" | sed 's/^/    /'
  exit "$status"
fi
echo "$title: done in $((SECONDS - start)) s  (log: $log)"
