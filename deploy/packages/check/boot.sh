#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The first process of a machine (machines.py), in namespaces of its own, becomes its systemd.
#   boot.sh BASE FOLDER NAME [HERE:THERE]...    BASE is read; FOLDER/upper takes what is written
set -euo pipefail
base=$1 folder=$2 name=$3
shift 3
root=$folder/root
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$base,upperdir=$folder/upper,workdir=$folder/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 666 "$root/dev/full" c 1 7
mknod -m 666 "$root/dev/random" c 1 8
mknod -m 666 "$root/dev/urandom" c 1 9
mknod -m 666 "$root/dev/tty" c 5 0
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for bind in "$@"; do
  mkdir -p "$root${bind#*:}"
  mount --bind "${bind%%:*}" "$root${bind#*:}"
done
echo "$name" > "$root/etc/hostname"
hostname "$name"
cd "$root"
mkdir -p .before
pivot_root . .before
umount -l /.before
exec /usr/bin/env -i container=mpc-kdc PATH=/usr/sbin:/usr/bin:/sbin:/bin /sbin/init
