#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An installation of krb5 whose programs run with a library in front of all others.
#
#   wrap_krb5.sh INSTALLATION NEW LIBRARY
set -euo pipefail
from=$(readlink -f "$1") to=$2 library=$3
rm -rf "$to"
mkdir -p "$to"/{bin,sbin}
for one in "$from"/*; do
  case $(basename "$one") in
    bin | sbin) ;;
    *) ln -s "$one" "$to/" ;;
  esac
done
for program in "$from"/{bin,sbin}/*; do
  wrapper=$to/${program#"$from"/}
  printf '#!/bin/sh\nLD_PRELOAD=%s${LD_PRELOAD:+:$LD_PRELOAD} exec %s "$@"\n' "$library" "$program" > "$wrapper"
  chmod +x "$wrapper"
done
