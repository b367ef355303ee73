#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes Debian's unpacked krb5 source package ours: our series after Debian's patches, an entry in the
# changelog, and what the build and other packages must know. Whatever is not as expected is an error:
# then Debian changed something that this script must learn.
#   prepare.sh SOURCE PATCHES SERIES VERSION DATE
#     SOURCE    the unpacked source package; PATCHES: the folder of our patches, SERIES: their list
#     VERSION   of this project; DATE of the changelog's entry, as `date -R` writes it
set -euo pipefail
source=$1 patches=$2 series=$3 version=$4 date=$5
cd "$source"

fail() { echo "prepare.sh: $*" >&2; exit 1; }

# edit FILE EXPRESSION: sed, and an error when nothing changed.
edit() {
  sed -E -i.before -e "$2" "$1"
  ! cmp -s "$1" "$1.before" || fail "$1 has nothing to apply to: $2"
  rm "$1.before"
}

add_patches() {
  local name
  mkdir -p debian/patches/remote-keys
  while read -r name; do
    case $name in '' | '#'*) continue ;; esac
    install -m 644 "$patches/$name" "debian/patches/remote-keys/${name##*/}"
    echo "remote-keys/${name##*/}" >> debian/patches/series
  done < "$series"
}

# Debian's version, +mpckdc and ours: newer than what it replaces, older than Debian's next revision.
add_changelog_entry() {
  local theirs suite klmdb=
  grep -q klmdb debian/*.install || klmdb='; klmdb.so'
  theirs=$(dpkg-parsechangelog -S Version)
  suite=$(dpkg-parsechangelog -S Distribution)
  {
    cat <<ENTRY
krb5 ($theirs+mpckdc$version) $suite; urgency=medium

  * Rebuilt with the series of patches for remote keys of mpc-kdc $version:
    a KDC may serve principals whose keys are held elsewhere. Without such a
    module nothing changes.
  * libk5crypto3 knows the enctypes aes128-gcm and aes256-gcm.
  * krb5-kdc: jemalloc is krb5kdc's allocator$klmdb.
  * Packages with these changes provide PACKAGE-remote-keys.

 -- mpc-kdc maintainers <maintainers@mpc-kdc.example>  $date

ENTRY
    cat debian/changelog
  } > debian/changelog.new
  mv debian/changelog.new debian/changelog
}

# Names that our patches add to an .exports file of krb5.
new_exports() {
  (cd debian/patches/remote-keys && cat $(sed -n 's,^remote-keys/,,p' ../series)) |
    awk -v file="$1" '/^\+\+\+ /{ inside = index($2, file) } /^(diff|---) /{ inside = 0 }
                      inside && /^[+-][A-Za-z_]/ { print }' |
    sort | awk '{ name = substr($0, 2); n[name] += /^\+/ ? 1 : -1 }
                END { for (name in n) if (n[name] > 0) print name }' | sort
}

# Who uses a new symbol depends on a name that Debian's own package does not provide: Debian's next
# revision has a higher version and not the symbols. The package's name may have a t64 at the end.
add_symbols() {
  local package=$1 exports=$2 node=$3 upstream file name
  file=debian/$package.symbols
  [ -e "$file" ] || file=debian/${package}t64.symbols
  upstream=$(dpkg-parsechangelog -S Version | sed 's/-[^-]*$//')
  edit "$file" "1s/\$/\n| $package-remote-keys/"
  new_exports "$exports" > debian/added
  [ -s debian/added ] || fail "no patch adds anything to $exports"
  while read -r name; do echo " $name@$node $upstream 1" >> "$file"; done < debian/added
  rm debian/added
}

# Each package that our series changes says so. PATTERN is its name, perhaps with a t64 at the end.
provide() {
  local package
  package=$(sed -nE "s/^Package: ($1(t64)?)\$/\1/p" debian/control)
  [ -n "$package" ] || fail "debian/control has no package $1"
  local stanza
  stanza=$(sed -n "/^Package: $package\$/,/^\$/p" debian/control)
  if grep -q '^Provides:' <<< "$stanza"; then
    edit debian/control "/^Package: $package\$/,/^\$/s/^Provides: */Provides: $1-remote-keys (= \${binary:Version}), /"
  else
    edit debian/control "s/^(Package: $package)\$/\1\nProvides: $1-remote-keys (= \${binary:Version})/"
  fi
}

# By hand, where a program copies the library's variable (svc_unsent_fdset) and so defines the symbol itself.
depend() {
  edit debian/control "/^Package: $1\$/,/^\$/s/^Depends: */Depends: $2-remote-keys, /"
}

add_patches
add_changelog_entry
add_symbols libk5crypto3 libk5crypto.exports k5crypto_3_MIT
add_symbols libkrb5-3 libkrb5.exports krb5_3_MIT
add_symbols libgssrpc4 libgssrpc.exports gssrpc_4_MIT
for package in libk5crypto3 libkrb5-3 libgssrpc4 libkdb5-10 libkadm5srv-mit12 libkadm5clnt-mit12 \
               krb5-kdc krb5-admin-server; do
  provide $package
done
depend krb5-kdc libgssrpc4
depend krb5-admin-server libgssrpc4
edit debian/control 's/^Build-Depends:/Build-Depends: libjemalloc-dev,/'
edit debian/rules 's/^(\tdh_auto_build \$\(DH_BUILD_OPTS\)).*/\1 -- KDC_MALLOC_LIB=-l:libjemalloc.so.2/'
if ! grep -q klmdb debian/*.install; then
  edit debian/control 's/^Build-Depends:/Build-Depends: liblmdb-dev,/'
  edit debian/rules 's/--with-system-verto/--with-system-verto --with-lmdb/'
  echo 'usr/lib/*/krb5/plugins/kdb/klmdb.so' >> debian/krb5-kdc.install
fi
# Debian's build takes MIT's generated configure as it is.
if grep -q '^+++ b/src/configure.ac' debian/patches/remote-keys/*.patch; then
  edit debian/control 's/^Build-Depends:/Build-Depends: autoconf,/'
  edit debian/rules 's/^(\tdh_auto_configure \$\(DH_BUILD_OPTS\))/\tcd src \&\& autoreconf -f\n\1/'
fi
