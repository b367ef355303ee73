#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` on a bare Debian 12: a chroot below build/fresh that debootstrap makes,
# with git and make and nothing else added. Needs root and the package mirror that this machine's own
# apt uses. Leaves nothing mounted and no process behind, whatever happens.
#   test-fresh.sh [--keep] [TARGET...]     TARGETs instead of: demo demo-stop test
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD
fresh=$checkout/build/fresh
root=$fresh/root
log=$fresh/log
keep=no
[ "${1:-}" = --keep ] && { keep=yes; shift; }
targets=${*:-demo demo-stop test}

fail() { echo "test-fresh: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || fail 'debootstrap and chroot need root'
for tool in debootstrap git; do
  command -v "$tool" >/dev/null && continue
  apt-get -q update
  apt-get -q -y --no-install-recommends install "$tool"
done

# Processes whose root is the chroot: what a demo left running, should it fail half-way.
processes_inside() {
  local proc
  for proc in /proc/[0-9]*; do
    [ "$(readlink "$proc/root" 2>/dev/null)" = "$root" ] && echo "${proc#/proc/}"
  done
  return 0
}

mounted_inside() { awk -v root="$root/" 'index($2, root) == 1 { print $2 }' /proc/self/mounts; }

clean_up() {
  local status=$? pid mount
  trap - EXIT
  for pid in $(processes_inside); do kill "$pid" 2>/dev/null || true; done
  [ -z "$(processes_inside)" ] || sleep 3
  for pid in $(processes_inside); do kill -KILL "$pid" 2>/dev/null || true; done
  for mount in $(mounted_inside | sort -r); do umount "$mount" || umount -l "$mount" || true; done
  if [ -n "$(mounted_inside)" ]; then
    echo "test-fresh: still mounted, so $root is left alone: $(mounted_inside)" >&2
  elif [ "$keep" = no ]; then
    rm -rf --one-file-system "$root"
  fi
  exit "$status"
}

# The mirror of this machine's own apt sources: the first one that serves the release itself.
mirror() {
  # shellcheck disable=SC2016  # apt's own variables
  apt-get indextargets --format '$(SITE) $(RELEASE) $(CREATED_BY)' 2>/dev/null |
    awk '$2 ~ /^bookworm$/ && $3 == "Packages" { print $1; exit }'
}

# What apt and TLS need to reach the mirror as this machine does: sources, proxies, trust, names.
copy_apt_configuration() {
  local path
  rm -f "$root/etc/apt/sources.list"
  for path in etc/apt/sources.list etc/apt/sources.list.d etc/apt/apt.conf etc/apt/apt.conf.d \
              etc/apt/auth.conf etc/apt/auth.conf.d etc/apt/trusted.gpg.d etc/apt/keyrings \
              etc/apt/preferences.d etc/resolv.conf etc/hosts etc/ssl/certs \
              usr/local/share/ca-certificates usr/share/keyrings; do
    [ -e "/$path" ] || continue
    mkdir -p "$root/$(dirname "$path")"
    rm -rf "${root:?}/$path"
    cp -aL "/$path" "$root/$path" 2>/dev/null || cp -a "/$path" "$root/$path"
  done
}

inside() { chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 TERM="${TERM:-dumb}" \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${proxies[@]}" "$@"; }

proxies=()
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [ -n "${!name:-}" ] && proxies+=("$name=${!name}")
done

trap clean_up EXIT
trap 'exit 130' INT TERM
mkdir -p "$log"
rm -rf --one-file-system "$root"
site=$(mirror)
[ -n "$site" ] || fail 'apt here knows no mirror of bookworm; run apt-get update first'

deploy/progress.sh 'bare Debian 12 by debootstrap' "$log/debootstrap.log" \
  debootstrap --variant=minbase bookworm "$root" "$site"
copy_apt_configuration
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --bind /dev "$root/dev"
mount --bind /dev/pts "$root/dev/pts"  # terminals, for the tests of password prompts
mount -t tmpfs tmpfs "$root/dev/shm" 2>/dev/null || true

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
  inside make -C /root/mpc-kdc "$target"
done
echo 'test-fresh: passed'
