# SPDX-License-Identifier: Apache-2.0
# For bash to source: a bare Debian in a folder, for scripts that try things in one. As root.
#
#   chroot_make SUITE ROOT LOG   debootstrap, with this machine's apt configuration
#   chroot_mount ROOT            /proc, /sys, /dev, /dev/pts, /dev/shm
#   chroot_run ROOT COMMAND...   in a clean environment
#   chroot_end ROOT              ends what still runs inside and unmounts; fails if something stays mounted

chroot_fail() { echo "${0##*/}: $*" >&2; exit 1; }

# TOOL... that Debian's packages of the same names have.
chroot_tools() {
  local tool
  [ "$(id -u)" = 0 ] || chroot_fail 'debootstrap and chroot need root'
  for tool in "$@"; do
    command -v "$tool" > /dev/null && continue
    apt-get -q update
    apt-get -q -y --no-install-recommends install "$tool"
  done
}

# The mirror of this machine's own apt sources: the first one that serves the release itself. It is
# taken for the other suites too.
chroot_mirror() {
  # shellcheck disable=SC2016  # apt's own variables
  apt-get indextargets --format '$(SITE) $(RELEASE) $(CREATED_BY)' 2> /dev/null |
    awk '$2 ~ /^(bookworm|trixie)$/ && $3 == "Packages" { print $1; exit }'
}

# What apt and TLS need to reach the mirror as this machine does: sources, proxies, trust, names.
chroot_copy_apt() {
  local suite=$1 root=$2 path own
  rm -f "$root/etc/apt/sources.list"
  for path in etc/apt/sources.list etc/apt/sources.list.d etc/apt/apt.conf etc/apt/apt.conf.d \
              etc/apt/auth.conf etc/apt/auth.conf.d etc/apt/trusted.gpg.d etc/apt/keyrings \
              etc/apt/preferences.d etc/resolv.conf etc/hosts etc/ssl/certs \
              usr/local/share/ca-certificates usr/share/keyrings; do
    [ -e "/$path" ] || continue
    mkdir -p "$root/$(dirname "$path")"
    rm -rf "${root:?}/$path"
    cp -aL "/$path" "$root/$path" 2> /dev/null || cp -a "/$path" "$root/$path"
  done
  own=$(. /etc/os-release && echo "$VERSION_CODENAME")
  find "$root/etc/apt" -name '*.list' -o -name '*.sources' | xargs -r sed -i "s/\\b$own\\b/$suite/g"
}

chroot_make() {
  local suite=$1 root=$2 log=$3 site
  chroot_tools debootstrap
  site=$(chroot_mirror)
  [ -n "$site" ] || chroot_fail 'apt here knows no mirror of Debian; run apt-get update first'
  mkdir -p "$log"
  "$(dirname "${BASH_SOURCE[0]}")/progress.sh" "bare Debian $suite by debootstrap" "$log/debootstrap.log" \
    debootstrap --variant=minbase "$suite" "$root" "$site"
  chroot_copy_apt "$suite" "$root"
}

chroot_mount() {
  local root=$1
  mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
  mountpoint -q "$root/sys" || mount -t sysfs -o ro sysfs "$root/sys"
  mountpoint -q "$root/dev" || mount --bind /dev "$root/dev"
  mountpoint -q "$root/dev/pts" || mount --bind /dev/pts "$root/dev/pts"  # terminals, for prompts
  mountpoint -q "$root/dev/shm" || mount -t tmpfs tmpfs "$root/dev/shm" 2> /dev/null || true
}

chroot_run() {
  local root=$1 name proxies=()
  shift
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [ -n "${!name:-}" ] && proxies+=("$name=${!name}")
  done
  chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 TERM="${TERM:-dumb}" \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${proxies[@]}" "$@"
}

# Processes whose root is the chroot: what a failure half-way left running.
chroot_processes() {
  local root=$1 proc
  for proc in /proc/[0-9]*; do
    [ "$(readlink "$proc/root" 2> /dev/null)" = "$root" ] && echo "${proc#/proc/}"
  done
  return 0
}

chroot_mounts() { awk -v root="$1/" 'index($2, root) == 1 { print $2 }' /proc/self/mounts; }

chroot_end() {
  local root=$1 pid mount
  for pid in $(chroot_processes "$root"); do kill "$pid" 2> /dev/null || true; done
  [ -z "$(chroot_processes "$root")" ] || sleep 3
  for pid in $(chroot_processes "$root"); do kill -KILL "$pid" 2> /dev/null || true; done
  for mount in $(chroot_mounts "$root" | sort -r); do umount "$mount" || umount -l "$mount" || true; done
  [ -z "$(chroot_mounts "$root")" ] || {
    echo "${0##*/}: still mounted, so $root is left alone: $(chroot_mounts "$root")" >&2
    return 1
  }
}
