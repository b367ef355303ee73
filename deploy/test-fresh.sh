#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` on a bare Debian 12: a chroot below build/fresh that debootstrap makes,
# with git and make and nothing else added. Needs root and the package mirror that this machine's own
# apt uses. Leaves nothing mounted and no process behind, whatever happens.
#   test-fresh.sh [--keep] [TARGET...]     TARGETs instead of: demo demo-stop test
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/chroot.sh
checkout=$PWD
fresh=$checkout/build/fresh
root=$fresh/root
log=$fresh/log
keep=no
[ "${1:-}" = --keep ] && { keep=yes; shift; }
targets=${*:-demo demo-stop test}

clean_up() {
  local status=$?
  trap - EXIT
  if chroot_end "$root" && [ "$keep" = no ]; then
    rm -rf --one-file-system "$root"
  fi
  exit "$status"
}

chroot_tools debootstrap git
trap clean_up EXIT
trap 'exit 130' INT TERM
rm -rf --one-file-system "$root"
chroot_make bookworm "$root" "$log"
chroot_mount "$root"

deploy/progress.sh 'git and make' "$log/packages.log" \
  chroot "$root" /bin/sh -c 'apt-get -q update && DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y --no-install-recommends install git make'
# The committed state and nothing else: that is what a newcomer clones.
git clone -q --no-hardlinks "$checkout" "$root/root/mpc-kdc"
if [ -n "$(git status --porcelain)" ]; then
  echo 'test-fresh: the checkout has changes that are not committed; they are not tested'
fi

for target in $targets; do
  echo "== make $target, in the chroot"
  chroot_run "$root" make -C /root/mpc-kdc "$target"
done
echo 'test-fresh: passed'
