#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh [PACKAGES]: the three images, from the folder with the .deb files (build/packages/bookworm).
#   TOOL=docker|podman|buildah   default: the first that is there
#   BASE=IMAGE                   instead of debian:bookworm-slim of Docker's registry; "debootstrap": made here
#                                (root), where no registry is reached
#   TAG=NAME                     default: latest
#   FLAGS='...'                  more options for TOOL, such as --isolation chroot
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
packages=${1:-${MPCKDC_BUILD:-$repository/build}/packages/bookworm}
[ -e "$packages/Packages" ] || { echo "$packages holds no packages: run make packages" >&2; exit 1; }
tag=${TAG:-latest}
read -ra flags <<< "${FLAGS:-}"
if [ -z "${TOOL:-}" ]; then
  for TOOL in docker podman buildah; do command -v "$TOOL" > /dev/null && break; done
fi
run=("$TOOL")

# A base of our own, with this machine's apt configuration: for tries, and not to be given to others.
bootstrap() {
  local root
  # shellcheck source=deploy/chroot.sh
  . "$here/../chroot.sh"
  root=$(mktemp -d)
  chmod 755 "$root"  # of the image's / too: the servers' user is not root
  chroot_make bookworm "$root" "${MPCKDC_BUILD:-$repository/build}/log"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  if [ "$TOOL" = buildah ]; then
    local id
    id=$("${run[@]}" from scratch)
    "${run[@]}" add -q "$id" "$root" / > /dev/null
    "${run[@]}" commit -q "$id" localhost/mpc-kdc-base > /dev/null
    "${run[@]}" rm "$id" > /dev/null
  else
    tar -C "$root" -c . | "${run[@]}" import - localhost/mpc-kdc-base > /dev/null
  fi
  rm -rf --one-file-system "$root"
}

if [ "${BASE:-}" = debootstrap ]; then
  "${run[@]}" inspect --type image localhost/mpc-kdc-base > /dev/null 2>&1 || bootstrap
  BASE=localhost/mpc-kdc-base
fi
for target in server kdc client; do
  name=mpc-kdc/$target
  [ $target != server ] || name=mpc-kdc/mpc-server
  arguments=(-t "$name:$tag" --target $target -f "$here/Containerfile" ${BASE:+--build-arg BASE="$BASE"})
  # Without it podman's images have no health check.
  [ "$TOOL" = docker ] || arguments+=(--format docker)
  "${run[@]}" build "${flags[@]}" "${arguments[@]}" "$packages"
done
