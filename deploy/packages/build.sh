#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the .deb files for one Debian release, in a chroot of that release, as root:
#   build.sh RELEASE [PART...]      RELEASE: bookworm or trixie
#     chroot    debootstrap, and the tools that every build needs
#     krb5      Debian's krb5 source package with our series
#     mpc-kdc   our own packages, against that krb5
#     lintian   no error and no warning in ours, none in krb5 that Debian's own does not have
#     mit       a quick choice of MIT's own tests on that source package; not without being named
# Without PART all of them but mit. Results are in build/packages/RELEASE, which is a repository for apt; what
# was built from the same input is not built again.
#   MPCKDC_CHROOTS=DIR   chroots that outlive build/ (default: build/packages/chroot)
#   CCACHE_DIR=DIR       a compiler cache that is shared with the chroots
#   KRB5_SOURCE=DIR      a local copy of Debian's source package instead of the mirror's
#   KRB5_NEWEST=only     no older one where the mirror does not have the newest that it names
#   BUILD_NAME=NAME      another folder to build in (build/packages/RELEASE-NAME, and other paths inside)
#   JOBS=N               parallel compilers
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
. "$here/../chroot.sh"

usage() { sed -n '/^#   build.sh/,/^# Without/s/^# *//p' "$0" >&2; exit 2; }
release=${1:-}
case $release in bookworm) suffix=deb12 ;; trixie) suffix=deb13 ;; *) usage ;; esac
shift
parts=${*:-chroot krb5 mpc-kdc lintian}

name=${BUILD_NAME:+-$BUILD_NAME}
out=${MPCKDC_BUILD:-$repository/build}/packages/$release$name
mkdir -p "$out/log" "${MPCKDC_CHROOTS:=${MPCKDC_BUILD:-$repository/build}/packages/chroot}"
out=$(cd "$out" && pwd)
log=$out/log
patches=$out/krb5-patches
root=$(cd "$MPCKDC_CHROOTS" && pwd)/$release
work=/build$name  # in the chroot
jobs=${JOBS:-$(nproc)}
version=$(sed -n 's/^project(mpc-kdc VERSION \([0-9.]*\).*/\1/p' "$repository/CMakeLists.txt")

progress() { "$here/../progress.sh" "$release: $1" "$log/$2.log" "${@:3}"; }
inside() { chroot_run "$root" "$@"; }
export -f chroot_run inside
export root

# When PATH... last changed: the date of what is made from them, the same at every build.
date_of() {
  local epoch
  epoch=$(git -C "$repository" log -1 --format=%ct -- "$@" 2> /dev/null) || true
  echo "${epoch:-$(stat -c %Y "$repository/CHANGELOG.md")}"
}

# The tree to package: what git knows, with changes that are not committed.
tracked_state() {
  local state
  state=$(git -C "$repository" stash create 2> /dev/null) || true
  git -C "$repository" rev-parse "${state:-HEAD}^{tree}"
}

# ---- The chroot ----------------------------------------------------------------------------------

make_chroot() {
  if [ ! -e "$root/.bare" ]; then
    [ -d "$root" ] && [ ! -x "$root/usr/bin/apt-get" ] && rm -rf --one-file-system "$root"
    if [ -d "$root" ]; then chroot_copy_apt "$release" "$root"; else chroot_make "$release" "$root" "$log"; fi
    touch "$root/.bare"
  fi
  enter_chroot
  # Configuration of apt came from this machine; packages that have a file of the same name keep it.
  printf 'Dpkg::Options { "--force-confdef"; "--force-confold"; };\n' > "$root/etc/apt/apt.conf.d/99keep"
  # Sources of krb5 are in the same places as its packages.
  find "$root/etc/apt" -name '*.sources' -exec sed -i 's/^Types: deb$/Types: deb deb-src/' {} +
  find "$root/etc/apt" -name '*.list' -exec sed -i -E '/^deb-src/d; s/^deb (.*)$/&\ndeb-src \1/' {} +
  progress 'reading the package lists' apt-update inside apt-get -q update
  progress 'the tools of every build' tools inside env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y --no-install-recommends install build-essential ccache debhelper dpkg-dev fakeroot lintian
}

enter_chroot() {
  [ -x "$root/usr/bin/apt-get" ] || { make_chroot; return; }
  chroot_mount "$root"
  rm -f "$root/etc/apt/sources.list.d/built.list" "$root/etc/apt/preferences.d/built"  # see offer_krb5
  if [ -n "${CCACHE_DIR:-}" ]; then
    mkdir -p "$root/ccache"
    mountpoint -q "$root/ccache" || mount --bind "$CCACHE_DIR" "$root/ccache"
  fi
}

# dpkg-buildpackage in FOLDER of the chroot. DEB_BUILD_OPTIONS: MIT's tests and ours run elsewhere. No CCACHE_BASEDIR:
# with it ccache gives the compiler other paths, and __FILE__ is another than without a cache.
build_package() {
  local folder=$1
  shift
  inside env -C "$folder" DEB_BUILD_OPTIONS="nocheck parallel=$jobs" \
    PATH="/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin" CCACHE_DIR=/ccache \
    CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 \
    CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache \
    ${CCACHE_DISABLE:+CCACHE_DISABLE=1} dpkg-buildpackage -us -uc "$@"
}
export -f build_package
export jobs work

install_build_dependencies() {
  inside env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
    --allow-downgrades build-dep "$@"
}
export -f install_build_dependencies

# An index, so that apt finds what was built and takes it for Build-Depends.
index() {
  (cd "$out" && dpkg-scanpackages -m . > Packages 2>> "$log/index.log" && gzip -kf9n Packages &&
   apt-ftparchive -o APT::FTPArchive::Release::Suite="$release" release . > Release.new && mv Release.new Release)
}

# ---- krb5 ----------------------------------------------------------------------------------------

# The versions of krb5's source that the mirror's lists name, the newest first.
krb5_versions() { inside apt-cache showsrc --only-source krb5 | sed -n 's/^Version: //p' | sort -u -r -V; }

# Into the empty folder $1: the newest one. For some days around an advisory a mirror may name a source that it does
# not have; then the one before, and tell_of_newer_krb5 says so.
download_krb5() {
  local version
  for version in $(krb5_versions); do
    rm -rf "${root:?}$1"
    mkdir -p "$root$1"
    inside env -C "$1" apt-get -q source --download-only --only-source "krb5=$version" && return
    [ "${KRB5_NEWEST:-}" != only ] || break
  done
  echo "The mirror does not have krb5's source: try again later, or name a folder with it by KRB5_SOURCE."
  return 1
}

# Debian's source package: its .dsc and files into $out/krb5-source. What was there stays until all has come.
fetch_krb5() {
  rm -rf "$root$work/fetch"
  mkdir -p "$root$work/fetch"
  if [ -n "${KRB5_SOURCE:-}" ]; then
    cp "$KRB5_SOURCE"/krb5_* "$root$work/fetch"
  else
    download_krb5 "$work/fetch" || return
  fi
  rm -rf "$out/krb5-source"
  mkdir -p "$out/krb5-source"
  mv "$root$work/fetch"/krb5_* "$out/krb5-source"
}

tell_of_newer_krb5() {
  local newest theirs
  newest=$(krb5_versions | sed -n 1p)
  theirs=$(sed -n 's/^Version: //p' "$(dsc)")
  dpkg --compare-versions "$newest" gt "$theirs" || return 0
  echo "$release: NOTE: Debian has krb5 $newest; these are built on $theirs. Later: deploy/packages/rebuild-krb5 $release"
}

# This release's patches, and the file `series` with their order, in $patches.
write_patches() {
  rm -rf "$patches"
  mkdir -p "$patches"
  if [ -x "$repository/krb5-patches/series.py" ]; then
    "$repository/krb5-patches/series.py" write "$release" "$patches"
  else
    cp "$repository"/krb5-patches/series "$repository"/krb5-patches/*.patch "$patches"
  fi
}

dsc() { ls "$out"/krb5-source/krb5_*.dsc; }

krb5_fingerprint() {
  {
    cat "$(dsc)" "$here/krb5/prepare.sh" "$patches/series"
    sed -n '/^build_package/,/^}/p' "$0"
    echo "$version $(date_of krb5-patches deploy/packages/krb5)"
    (cd "$patches" && cat $(sed -e 's/#.*//' series))
  } | sha256sum | cut -c1-16
}

build_krb5() {
  local folder made
  enter_chroot
  progress "Debian's source package of krb5" krb5-fetch fetch_krb5
  tell_of_newer_krb5
  write_patches
  made=$(krb5_fingerprint)
  if [ "$(cat "$out/krb5.built" 2> /dev/null)" = "$made" ]; then
    echo "$release: krb5 $(sed -n 's/^Version: //p' "$(dsc)") is built already"
    return
  fi
  rm -rf "$root$work/krb5"
  mkdir -p "$root$work/krb5"
  cp "$out"/krb5-source/* "$root$work/krb5"
  progress 'unpacking krb5' krb5-unpack \
    inside env -C "$work/krb5" dpkg-source --no-check --skip-patches -x "$(basename "$(dsc)")" source
  "$here/krb5/prepare.sh" "$root$work/krb5/source" "$patches" "$patches/series" "$version" \
    "$(date -R -u -d "@$(date_of krb5-patches deploy/packages/krb5)")"
  progress "krb5's build dependencies" krb5-dependencies \
    install_build_dependencies --arch-only "$work/krb5/source"
  PROGRESS_LINES=5300 progress 'building krb5' krb5-build build_package "$work/krb5/source" --build=source,any
  rm -f "$out"/*krb5*.deb "$out"/lib{gss,k5,kadm5,kdb,krad}*.deb "$out"/krb5_*
  cp "$root$work"/krb5/*+mpckdc*.{deb,dsc,debian.tar.xz,changes,buildinfo} "$out"
  cp "$root$work"/krb5/krb5_*.orig.tar.gz "$out"
  index
  echo "$made" > "$out/krb5.built"
}

# ---- Our own -------------------------------------------------------------------------------------

# The checkout with a debian/ directory, as a source package has it.
export_source() {
  local folder=$1 date=$2 systemd=deploy/systemd
  rm -rf "$folder"
  mkdir -p "$folder"
  git -C "$repository" archive "$(tracked_state)" | tar -x -C "$folder"
  cd "$folder"
  cp -r deploy/packages/debian debian
  cp $systemd/mpc-server.service debian/mpc-server.service
  cp $systemd/mpc-rotate-krbtgt.service debian/mpc-admin.mpc-rotate-krbtgt.service
  cp $systemd/mpc-rotate-krbtgt.timer debian/mpc-admin.mpc-rotate-krbtgt.timer
  cp $systemd/mpc-server.sysusers debian/mpc-server.sysusers
  cp deploy/logrotate/mpc-kdc debian/mpc-server.logrotate
  "$here/changelog.py" CHANGELOG.md "$version+$suffix" "$release" "$date" > debian/changelog
}

# The krb5 that was built is in the chroot's apt sources, before Debian's.
offer_krb5() {
  mkdir -p "$root/packages"
  mountpoint -q "$root/packages" && umount "$root/packages"
  mount --bind "$out" "$root/packages"
  echo 'deb [trusted=yes] file:/packages ./' > "$root/etc/apt/sources.list.d/built.list"
  printf 'Package: src:krb5\nPin: version /[+]mpckdc/\nPin-Priority: 1001\n' > "$root/etc/apt/preferences.d/built"
  inside apt-get -q update
  inside env DEBIAN_FRONTEND=noninteractive apt-get -q -y --allow-downgrades upgrade
}

own_fingerprint() {
  {
    tracked_state
    sed -n '/^build_package/,/^}/p' "$0"
    echo "$version $(date_of .)"
    cat "$out/krb5.built"
  } | sha256sum | cut -c1-16
}

build_own() {
  local folder=$root$work/mpc-kdc/source made
  [ -e "$out/krb5.built" ] || { echo "$release: build krb5 first" >&2; return 1; }
  made=$(own_fingerprint)
  if [ "$(cat "$out/mpc-kdc.built" 2> /dev/null)" = "$made" ]; then
    echo "$release: our packages are built already"
    return
  fi
  enter_chroot
  (export_source "$folder" "$(date_of .)")
  index
  progress 'the krb5 that was built' own-krb5 offer_krb5
  progress 'build dependencies' own-dependencies install_build_dependencies "$work/mpc-kdc/source"
  progress 'building mpc-server, mpc-admin, the plugin and login-storm' own-build \
    build_package "$work/mpc-kdc/source"
  rm -f "$out"/{mpc-,login-storm}*.deb "$out"/mpc-kdc_*
  cp "$root$work"/mpc-kdc/*.{deb,dsc,tar.xz,changes,buildinfo} "$out"
  index
  echo "$made" > "$out/mpc-kdc.built"
}

# ---- lintian -------------------------------------------------------------------------------------

# In the chroot, in an empty folder: errors and warnings of the .deb files in FOLDER, without versions.
lintian_tags() {
  inside sh -c "cd $1 && lintian --allow-root --tag-display-limit 0 --fail-on none *.deb" |
    sed -nE '/^[EW]: /{s/[0-9]+\.[0-9][^ ]*-[0-9][^ )]*//g;p}' | sort -u
}

# Debian's own packages of krb5, of the version that ours are built on, or of the newest that the mirror has.
fetch_stock_krb5() {
  local theirs
  theirs=$(sed -n 's/^Version: //p' "$(dsc)")
  inside apt-cache show "krb5-kdc=$theirs" > /dev/null 2>&1 ||
    theirs=$(inside apt-cache madison krb5-kdc | awk '$3 !~ /mpckdc/ { print $3; exit }')
  inside env -C "$work/stock" apt-get -q download $(cd "$root$work/ours" && ls | sed "s/_.*/=$theirs/")
}

# Ours have no error and no warning; krb5's none that Debian's own do not have.
check_lintian() {
  enter_chroot
  progress 'lintian of our packages' lintian inside sh -c "cd $work/mpc-kdc && \
    lintian --allow-root --tag-display-limit 0 --fail-on error,warning mpc-kdc_*.changes"
  rm -rf "$root$work/ours" "$root$work/stock"
  mkdir -p "$root$work/ours" "$root$work/stock"
  cp "$out"/*+mpckdc*.deb "$root$work/ours"
  rm -f "$root$work"/ours/*-dbgsym_*
  progress "Debian's own krb5" lintian-stock fetch_stock_krb5
  lintian_tags "$work/stock" > "$log/lintian-stock.tags"
  lintian_tags "$work/ours" > "$log/lintian-ours.tags"
  if comm -13 "$log/lintian-stock.tags" "$log/lintian-ours.tags" | grep .; then
    echo "$release: krb5 has these and Debian's has not"
    return 1
  fi
  echo "$release: lintian: our packages have no error and no warning, krb5 the $(wc -l < "$log/lintian-stock.tags") of Debian's"
}

# ---- MIT's tests ---------------------------------------------------------------------------------

# Of the source package that was built, patched and with a provider. Built and run in our own way on this machine
# (krb5-patches/krb5-check.sh), also what belongs to another release. By a short name of the folder: t_kdb.py's
# slapd has a socket deep below it, whose path may have 107 characters.
run_mit_tests() {
  local folder=${out%/*}/mit-$release short=/run/mpc-mit
  "$here/../install-packages.sh" "$log/mit-packages.log"
  "$here/../install-packages.sh" "$log/mit-packages.log" "$here/../packages-test.txt"
  mkdir -p "$folder" "$short"
  # shellcheck disable=SC2016  # the inner shell's
  KRB5_RELEASE=$release KRB5_SOURCE=$out/krb5-source BUILD_DIR=$short \
    unshare --mount sh -c 'mount --bind "$1" "$2" && shift 2 && exec "$@"' sh "$folder" "$short" \
    "$repository/krb5-patches/krb5-check.sh" --fresh --variants 'patched provider' \
    --only '^(tests/t_(general|renew|u2u|skew|referral|preauth|kdb)\.py|kdc/t_workers\.py|unit:lib/crypto)'
}

# ---- Main ----------------------------------------------------------------------------------------

export -f fetch_krb5 krb5_versions download_krb5 offer_krb5 fetch_stock_krb5 dsc
export here repository out

# A chroot that outlives build/ is left as it is: others may be at work in it.
leave() {
  local status=$?
  trap - EXIT
  case $root in "${out%/*}"/*) chroot_end "$root" || true ;; esac
  exit $status
}
main() {
  exec 9> "$root.lock"
  flock -n 9 || { echo "$release: waiting for another build.sh"; flock 9; }
  command -v apt-ftparchive > /dev/null || apt-get -q -y --no-install-recommends install apt-utils
  chroot_tools debootstrap git
  trap leave EXIT
  trap 'exit 130' INT TERM
  for part in $parts; do
    case $part in
      chroot) make_chroot ;;
      krb5) build_krb5 ;;
      mpc-kdc) build_own ;;
      lintian) check_lintian ;;
      mit) run_mit_tests ;;
      *) usage ;;
    esac
  done
  echo "$release: packages are in $out"
}

main; exit  # on one line: the script may be edited while it runs
