#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of one release as a sysadmin would, on machines that check/machines.py makes of a bare
# Debian of that release, and tries what they promise (check/cases.py). As root.
#   check.sh RELEASE [CASE...]    CASE: packages stock newer realm units journal watchdog comes-back upgrade plugin held (default: all)
#   MPCKDC_MACHINES=NAME other names of namespaces, for a second check at the same time (default: mpcpkg)
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

chroot_tools debootstrap
for tool in ip:iproute2 dpkg-scanpackages:dpkg-dev ssh-keygen:openssh-client readelf:binutils; do
  command -v "${tool%%:*}" > /dev/null || apt-get -q -y --no-install-recommends install "${tool#*:}"
done

# The machines' names are this machine's: one check at a time, or another MPCKDC_MACHINES.
exec 9> "/run/lock/${MPCKDC_MACHINES:-mpcpkg}-check"
flock -n 9 || { echo "$release: waiting for another check.sh"; flock 9; }

# Debian may have a newer krb5 than the one that ours are built on. It would stay away from a machine with the pin
# of deploy/README.md, but these install Debian's first: they do without the newer one.
hold_back_newer_krb5() {
  local ours version preferences=$base/etc/apt/preferences.d/newer-krb5
  ours=$(sed -n 's/^Version: \(.*\)+mpckdc.*/\1/p' "$packages"/krb5_*.dsc)
  rm -f "$preferences"
  chroot "$base" apt-get -q update > /dev/null
  for version in $(chroot "$base" apt-cache madison krb5-kdc | awk '{ print $3 }'); do
    dpkg --compare-versions "$version" gt "$ours" || continue
    echo "$release: NOTE: Debian has krb5 $version, ours are built on $ours: deploy/packages/rebuild-krb5 $release"
    printf 'Package: src:krb5\nPin: version %s\nPin-Priority: -1\n\n' "$version" >> "$preferences"
  done
}

if [ ! -e "$base/.complete" ]; then
  rm -rf --one-file-system "$base"
  chroot_make "$release" "$base" "$packages/log"
  hold_back_newer_krb5
  "$here/../progress.sh" "$release: systemd and ssh for the bare machines" "$packages/log/base.log" \
    chroot "$base" /bin/sh -c 'DEBIAN_FRONTEND=noninteractive apt-get -q -y \
      --no-install-recommends install systemd-sysv openssh-server openssh-client'
  touch "$base/.complete"
fi
hold_back_newer_krb5
exec "${PYTHON:-/usr/bin/python3}" -B "$here/check/cases.py" "$release" "$base" "$packages" "$@"
