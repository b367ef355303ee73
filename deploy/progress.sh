#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs one long step with its output in a log, shows how far it is, and on failure shows the log's
# end.
#   progress.sh TITLE LOG COMMAND [ARGUMENT...]
# The share that is done, and from it the time that is left, come from ninja's "[17/240]" or, with
# PROGRESS_LINES=N, from the lines of the log: about N when the step is done.
# On a terminal one line is kept up to date; elsewhere a line comes every 30 seconds.
set -u
title=$1 log=$2
shift 2
mkdir -p "$(dirname "$log")"
log=$(cd "$(dirname "$log")" && pwd)/$(basename "$log")
start=$SECONDS

"$@" >"$log" 2>&1 </dev/null &
pid=$!
trap 'kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; exit 130' INT TERM

last_line() { tail -c 400 "$log" 2>/dev/null | tr '\r' '\n' | grep -v '^ *$' | tail -n 1; }

# done_of LINE: "17 240", or nothing where the log does not tell.
done_of() {
  if [[ $1 =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
    echo "${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
  elif [ -n "${PROGRESS_LINES:-}" ]; then
    echo "$(wc -l < "$log") $PROGRESS_LINES"
  fi
}

minutes() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# "12 s", or "41 %, 1:20 passed, 1:55 left".
state() {
  local passed=$((SECONDS - start)) steps total
  read -r steps total < <(done_of "$1")
  if [ "${total:-0}" = 0 ] || [ "$steps" = 0 ]; then
    echo "$passed s"
    return
  fi
  [ "$steps" -lt "$total" ] || steps=$((total - 1))  # PROGRESS_LINES is about right
  local left=$((passed * (total - steps) / steps))
  echo "$((100 * steps / total)) %, $(minutes $passed) passed, $(minutes $left) left"
}

shown=$start
while kill -0 "$pid" 2>/dev/null; do
  sleep 0.2
  if [ -t 1 ]; then
    line=$(last_line)
    printf '\r\033[K%s: %s  %s' "$title" "$(state "$line")" "$(cut -c1-40 <<< "$line")"
  elif [ $((SECONDS - shown)) -ge 30 ]; then
    shown=$SECONDS
    printf '%s: %s\n' "$title" "$(state "$(last_line)")"
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
