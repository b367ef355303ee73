#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of packages.txt, or of another LIST, that are missing, and says which and why.
# Does nothing, and needs neither root nor network, when all are there.
#   install-packages.sh [LOG [LIST]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
log=${1:-$here/../build/log/packages.log}
list=${2:-$here/packages.txt}

is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=
while read -r package reason; do
  case $package in
    ''|'#'*) continue ;;
    libipsec-mb-dev) [ "$(uname -m)" = x86_64 ] || continue ;;  # exists for no other machine
    golang-go) command -v go > /dev/null && continue ;;  # another Go does as well
  esac
  is_installed "$package" && continue
  [ -n "$missing" ] || echo "packages that are missing:"
  printf '  %-24s%s\n' "$package" "$reason"
  missing="$missing $package"
done < "$list"

if [ -z "$missing" ]; then
  echo "packages: all installed"
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "Not root, so nothing was installed. As root:" >&2
  echo "  apt-get update && apt-get install --no-install-recommends$missing" >&2
  exit 1
fi

mkdir -p "$(dirname "$log")"
# The lists may be absent or old: an old one names versions that the mirror has dropped.
"$here/progress.sh" "reading the package lists" "$log" apt-get -q update
# The dependencies' own recommendations are not needed. Word splitting is meant.
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive "$here/progress.sh" "installing packages" "$log" \
  apt-get -q -y --no-install-recommends install $missing
