#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of one release as a sysadmin would, on machines that check/machines.py makes of a bare
# Debian of that release, and tries what they promise (check/cases.py). As root.
#   check.sh RELEASE [CASE...]    CASE: packages realm units watchdog upgrade held stock (default: all)
#   MPCKDC_CHROOTS=DIR   where the bare Debian is kept (default: build/packages/chroot)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
. "$here/../chroot.sh"

release=${1:-}
case $release in bookworm | trixie) shift ;; *) sed -n '/^#   check.sh/s/^# *//p' "$0" >&2; exit 2 ;; esac
build=${MPCKDC_BUILD:-$repository/build}/packages
packages=$build/$release
[ -e "$packages/Packages" ] || chroot_fail "no packages in $packages: run make packages RELEASES=$release"
mkdir -p "${MPCKDC_CHROOTS:=$build/chroot}"
base=$(cd "$MPCKDC_CHROOTS" && pwd)/$release-base

chroot_tools debootstrap dpkg-dev
for tool in ip:iproute2 ssh-keygen:openssh-client readelf:binutils; do
  command -v "${tool%%:*}" > /dev/null || apt-get -q -y --no-install-recommends install "${tool#*:}"
done
if [ ! -e "$base/.complete" ]; then
  rm -rf --one-file-system "$base"
  chroot_make "$release" "$base" "$packages/log"
  "$here/../progress.sh" "$release: systemd and ssh for the bare machines" "$packages/log/base.log" \
    chroot "$base" /bin/sh -c 'apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y \
      --no-install-recommends install systemd-sysv openssh-server openssh-client' 
  touch "$base/.complete"
fi
exec "${PYTHON:-/usr/bin/python3}" -B "$here/check/cases.py" "$release" "$base" "$packages" "$@"
