#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds krb5 from Debian's source package with our patches, and prints the directory of the build
# on stdout (all else goes to stderr):
#   DIRECTORY/source/src   the built tree, for MIT's own tests
#   DIRECTORY/install      an installation that runs from where it is
#
#   build.sh            all patches of `series`
#   build.sh --upto N   the first N patches
#   build.sh --stock    none: what Debian ships, built our way
#
# The directory's name has the hash of all that goes into it; if it is there, it is used as it is.
# After a build of all patches build/krb5/install and build/krb5/source point to it, if it is for the
# release that this machine has.
#   KRB5_RELEASE=NAME bookworm or trixie, by default that of this machine (see fetch.sh)
#   BUILD_DIR=DIR     where to work (default: build/ beside this folder)
#   KRB5_SOURCE=DIR   a local copy of the source package (see fetch.sh)
#   JOBS=N            parallel compilers
#   KRB5_UPTO=N       as --upto N, for scripts that call this one without arguments
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD_DIR:-${MPCKDC_BUILD:-$here/../build}}
jobs=${JOBS:-$(nproc)}

# No system copies of libraries that krb5 brings along: one result on every machine.
readonly CONFIGURE='--with-lmdb --without-system-verto --without-system-et --without-system-ss
  --with-ldap --without-libedit --without-readline --disable-nls'
readonly COMPILER_FLAGS='-O2 -g'
# krb5kdc's allocator (patch 13). Not glibc's: see README.md.
readonly KDC_MALLOC_LIB='-l:libjemalloc.so.2'
# Raise it when this script builds differently in another way.
readonly RECIPE=3

say() { echo "$*" >&2; }
fail() {
  say "krb5: $1"
  shift
  for line in "$@"; do say "  $line"; done
  exit 1
}
usage() {
  sed -n '/^#   build.sh/s/^# *//p' "$0" >&2
  exit 2
}

# Writes the patches that the release gets to $effective; sets label, and patches to their names.
select_patches() {
  "$here/series.py" write "$release" "$effective" || fail 'series.py failed'
  mapfile -t patches < "$effective/series"
  case ${1:---all} in
    --all)   label=patched ;;
    --stock) label=stock; patches=() ;;
    --upto)
      [[ ${2:-} =~ ^[0-9]+$ ]] || usage
      label=upto-$2; patches=("${patches[@]:0:$2}") ;;
    *) usage ;;
  esac
  [ "$release" = "$own_release" ] || label=$release-$label
}

# A hash of the source package, the patches and the way of building.
fingerprint() {
  {
    cat "$1"
    echo "$CONFIGURE $COMPILER_FLAGS $KDC_MALLOC_LIB $RECIPE"
    local patch
    for patch in "${patches[@]}"; do sha256sum < "$effective/$patch"; done
  } | sha256sum | cut -c1-16
}

# ---- The steps, each a command of its own to progress.sh -----------------------------------------

unpack() { dpkg-source --no-check -x "$1" "$dir/source"; }

# Debian's own patches are applied by dpkg-source and are quilt's business in .pc; ours get a
# directory of their own there.
apply() {
  [ -s "$dir/series" ] || return 0
  cd "$dir/source"
  QUILT_PATCHES=$dir/patches QUILT_SERIES=$dir/series QUILT_PC=.pc-remote-keys \
    quilt --quiltrc=- push -a --fuzz=0
}

configure() {
  local compiler=gcc
  if command -v ccache > /dev/null; then compiler='ccache gcc'; fi
  cd "$dir/source/src"
  # The source package has a configure script; a patch changes what it is made from.
  if [ -s "$dir/series" ] && (cd "$dir/patches" && xargs grep -q '^+++ b/src/configure.ac' < "$dir/series"); then
    autoreconf -f
  fi
  # shellcheck disable=SC2086 # options are words
  ./configure --prefix="$dir/install" --localstatedir="$dir/install/var" \
    $CONFIGURE CC="$compiler" CFLAGS="$COMPILER_FLAGS"
}

compile() { make -C "$dir/source/src" -j "$jobs" KDC_MALLOC_LIB="$KDC_MALLOC_LIB"; }
install() { make -C "$dir/source/src" install; }

# step TITLE FUNCTION [ARGUMENT...]
step() {
  local title=$1
  shift
  "$here/../deploy/progress.sh" "krb5 ($label): $title" "$dir/log/$1.log" \
    bash -euo pipefail -c '"$@"' - "$@" >&2
}

# ---- Main ----------------------------------------------------------------------------------------

if [ $# = 0 ] && [ -n "${KRB5_UPTO:-}" ]; then set -- --upto "$KRB5_UPTO"; fi
release=$("$here/fetch.sh" --release)
own_release=$(env -u KRB5_RELEASE "$here/fetch.sh" --release)
effective=$(mktemp -d)
trap 'rm -rf "$effective"' EXIT
select_patches "$@"
for tool in dpkg-source quilt gcc make bison; do
  command -v $tool > /dev/null || fail "$tool is missing" "make dependencies installs it"
done
dsc=$("$here/fetch.sh")

command -v autoreconf > /dev/null || fail 'autoreconf is missing' 'the package autoconf has it'
mkdir -p "$build/krb5"
build=$(cd "$build" && pwd)
dir=$build/krb5/$label-$(fingerprint "$dsc")
exec 9> "$build/krb5/.lock"
flock -n 9 || { say "krb5: waiting for another build.sh"; flock 9; }

if [ ! -e "$dir/complete" ]; then
  rm -rf "$dir"
  mkdir -p "$dir/log"
  # With the same sources below another directory ccache finds the same objects.
  export CCACHE_BASEDIR=$dir CCACHE_NOHASHDIR=1
  export dir jobs CONFIGURE COMPILER_FLAGS KDC_MALLOC_LIB
  export -f unpack apply configure compile install
  cp -r "$effective" "$dir/patches"
  printf '%s\n' "${patches[@]}" | sed '/^$/d' > "$dir/series"
  step 'unpacking' unpack "$dsc"
  step "applying ${#patches[@]} patches" apply
  step 'configuring' configure
  PROGRESS_LINES=2600 step 'compiling' compile
  step 'installing' install
  touch "$dir/complete"
else
  say "krb5 ($label): built already"
fi
if [ "$label" = patched ]; then
  ln -sfn "$(basename "$dir")/install" "$build/krb5/install"
  ln -sfn "$(basename "$dir")/source" "$build/krb5/source"
fi
echo "$dir"
