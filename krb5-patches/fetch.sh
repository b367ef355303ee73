#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Gets Debian's krb5 source package and prints the path of its .dsc on stdout (all else goes to
# stderr).
#   KRB5_RELEASE=NAME   bookworm (Debian 12, krb5 1.20.1) or trixie (Debian 13, krb5 1.21.3); by
#                       default that of this machine, elsewhere bookworm
#   KRB5_SOURCE=DIR     take the package from DIR (a .dsc and its files) instead of the network
#   BUILD_DIR=DIR       where to work (default: build/ beside this folder)
#   fetch.sh --release  prints which release it would be, and does nothing
#
# The package comes from the registry that this machine's apt already uses. Machines seldom have
# source entries enabled, so a private list of them is derived from the apt sources that are there;
# for the other release its name is put into them.
# All state of apt is private too: nothing under /etc or /var changes, root is not needed.
# The original tarball is pinned; Debian's revision may be newer, since it only brings fixes.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD_DIR:-${MPCKDC_BUILD:-$here/../build}}

# shellcheck source=/dev/null
machine=$([ ! -r /etc/os-release ] || (. /etc/os-release && echo "${VERSION_CODENAME:-}"))
case ${KRB5_RELEASE:-$machine} in
  trixie) release=trixie ;;
  bookworm) release=bookworm ;;
  *)
    if [ -n "${KRB5_RELEASE:-}" ]; then
      echo "krb5 source: KRB5_RELEASE is bookworm or trixie, not $KRB5_RELEASE" >&2
      exit 2
    fi
    release=bookworm
    ;;
esac
readonly release machine
if [ "${1:-}" = --release ]; then
  echo $release
  exit
fi

case $release in
  bookworm)
    readonly UPSTREAM=1.20.1 DEBIAN=12
    readonly ORIG_SHA256=704aed49b19eb5a7178b34b2873620ec299db08752d6a8574f95d41879ab8851
    readonly VERSION_PATTERN='^1\.20\.1-2(\+deb12u[0-9]+)?$'
    ;;
  trixie)
    readonly UPSTREAM=1.21.3 DEBIAN=13
    readonly ORIG_SHA256=b7a4cd5ead67fb08b980b21abd150ff7217e85ea320c9ed0c6dadd304840ad35
    readonly VERSION_PATTERN='^1\.21\.3-5(\+deb13u[0-9]+)?$'
    ;;
esac
readonly ORIG=krb5_$UPSTREAM.orig.tar.gz

say() { echo "$*" >&2; }
fail() {
  say "krb5 source: $1"
  shift
  for line in "$@"; do say "  $line"; done
  exit 1
}

field() { sed -n "s/^$2: *//p" "$1" | head -n 1; }

# "SHA256 NAME" of each file that a .dsc lists.
listed_files() {
  awk '/^Checksums-Sha256:/ { inside = 1; next } /^[^ ]/ { inside = 0 } inside { print $1, $3 }' "$1"
}

# The .dsc of the newest acceptable version in a directory, or nothing.
find_dsc() {
  local dsc version
  for dsc in "$1"/krb5_*.dsc; do
    [ -f "$dsc" ] || continue
    version=$(field "$dsc" Version)
    if [[ $version =~ $VERSION_PATTERN ]]; then echo "$version $dsc"; fi
  done | sort -V | tail -n 1 | cut -d' ' -f2-
}

# Fails unless the .dsc lists the pinned tarball and all its files are there and intact.
verify() {
  local dsc=$1 dir sum name actual pinned=
  dir=$(dirname "$dsc")
  while read -r sum name; do
    [[ $name == */* ]] && fail "$dsc lists a file outside its directory: $name"
    [ -f "$dir/$name" ] || fail "$name is missing" "$dsc lists it; copy it to $dir"
    actual=$(sha256sum "$dir/$name" | cut -d' ' -f1)
    [ "$actual" = "$sum" ] ||
      fail "$name is damaged" "expected SHA-256 $sum" "found            $actual" "in $dir"
    if [ "$name" = $ORIG ]; then pinned=$actual; fi
  done < <(listed_files "$dsc")
  [ "$pinned" = $ORIG_SHA256 ] || fail "$dsc is not built on the pinned $ORIG" \
    "expected SHA-256 $ORIG_SHA256" "found            ${pinned:-no such file in the .dsc}"
}

# ---- A private apt -------------------------------------------------------------------------------

# Debian's own archives are recognised by suite and component, not by name: a suite of this machine's
# release or of the one that is wanted, and the component main. (Other registries often have no
# sources, and an error of theirs would look like ours.)
suite_pattern() { echo "^(${machine:-$release}|$release|stable|oldstable)([-/].*)?\$"; }

# The suite of the release that is wanted, beside the machine's own: bookworm-security here is
# trixie-security there.
rename_suites() {
  if [ "$release" = "${machine:-$release}" ]; then
    cat
  else
    sed -E -e ':again' -e "/^(deb-src |Suites:)/s/ ($machine|stable|oldstable)([-\/ ]|\$)/ $release\2/" \
      -e 't again'
  fi
}

# One-line entries: deb [options] URI SUITE COMPONENT...
source_lines() {
  sed -e 's/#.*//' -e 's/^[ \t]*//' "$@" | awk -v suites="$(suite_pattern)" '
    $1 == "deb" || $1 == "deb-src" {
      line = $0; options = ""
      sub(/^deb(-src)?[ \t]+/, "", line)
      if (match(line, /^\[[^]]*\][ \t]*/)) {
        options = substr(line, 1, RLENGTH); line = substr(line, RLENGTH + 1)
      }
      n = split(line, word, /[ \t]+/)
      for (i = 3; i <= n; i++)
        if (word[i] == "main" && word[2] ~ suites)
          print "deb-src " options word[1] " " word[2] " main"
    }' | sort -u
}

# deb822 stanzas. Fields are kept as they are, but for Types, Suites and Components.
source_stanzas() {
  awk -v suites="$(suite_pattern)" '
    function flush(    i, n, word, kept, main) {
      n = split(value["suites"], word, /[ \t\n]+/)
      for (i = 1; i <= n; i++) if (word[i] ~ suites) kept = kept " " word[i]
      n = split(value["components"], word, /[ \t\n]+/)
      for (i = 1; i <= n; i++) if (word[i] == "main") main = 1
      if (kept != "" && main && value["types"] ~ /deb/ && tolower(value["enabled"]) !~ /no|false/) {
        print "Types: deb-src\nSuites:" kept "\nComponents: main"
        for (i = 1; i <= fields; i++)
          if (name[i] !~ /^(types|suites|components|enabled)$/)
            print name[i] ":" value[name[i]]
        print ""
      }
      delete value; delete name; fields = 0
    }
    FNR == 1 && NR > 1 { flush() }
    /^#/ { next }
    /^[ \t]*$/ { flush(); next }
    /^[ \t]/ { value[name[fields]] = value[name[fields]] "\n" $0; next }
    {
      colon = index($0, ":")
      name[++fields] = tolower(substr($0, 1, colon - 1))
      value[name[fields]] = substr($0, colon + 1)
    }
    END { flush() }' "$@"
}

# Writes a private apt configuration to $1. The system's own (proxies, credentials) is read first;
# its hooks are dropped, since they write to the system's directories.
write_apt_configuration() {
  local apt=$1
  mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial"
  rm -f "$apt"/parts/*
  local lists=() stanzas=() file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -r "$file" ] && lists+=("$file")
  done
  for file in /etc/apt/sources.list.d/*.sources; do
    [ -r "$file" ] && stanzas+=("$file")
  done
  if [ ${#lists[@]} -gt 0 ]; then
    source_lines "${lists[@]}" | rename_suites | sort -u > "$apt/parts/private.list"
  fi
  if [ ${#stanzas[@]} -gt 0 ]; then
    source_stanzas "${stanzas[@]}" | rename_suites > "$apt/parts/private.sources"
  fi
  find "$apt/parts" -type f -empty -delete
  [ -n "$(ls "$apt/parts")" ] || fail "no Debian archive among this machine's apt sources" \
    "looked for component main of suites $(suite_pattern)" \
    "in /etc/apt/sources.list and /etc/apt/sources.list.d" \
    "or put a copy of the source package somewhere and set KRB5_SOURCE to its directory"

  echo "Dir::Etc::Main \"$apt/private.conf\";" > "$apt/start.conf"
  {
    if [ -r /etc/apt/apt.conf ]; then echo '#include "/etc/apt/apt.conf";'; fi
    echo '#clear APT::Update::Pre-Invoke;'
    echo '#clear APT::Update::Post-Invoke;'
    echo '#clear APT::Update::Post-Invoke-Success;'
    echo "Dir::Etc::SourceList \"/dev/null\";"
    echo "Dir::Etc::SourceParts \"$apt/parts\";"
    echo "Dir::State::Lists \"$apt/lists\";"
    echo "Dir::Cache \"$apt/cache\";"
    if [ "$(id -u)" = 0 ]; then echo 'APT::Sandbox::User "root";'; fi
  } > "$apt/private.conf"
}

download() {
  local apt=$1 package=$2 log=$1/apt.log versions acceptable version
  write_apt_configuration "$apt"
  say "krb5 source: reading the source package lists (log: $log)"
  # One archive that is down need not matter; what counts is whether the package is found.
  APT_CONFIG=$apt/start.conf apt-get -q update > "$log" 2>&1 || true
  versions=$(APT_CONFIG=$apt/start.conf apt-cache showsrc --only-source krb5 2>>"$log" |
             sed -n 's/^Version: //p' | sort -uV)
  acceptable=$(grep -E "$VERSION_PATTERN" <<< "$versions" | sort -rV) || true
  if [ -z "$acceptable" ]; then
    say "krb5 source: end of $log:"
    tail -n 15 "$log" | sed 's/^/    /' >&2
    fail "no krb5 $UPSTREAM of Debian $DEBIAN in this machine's apt sources" \
      "found versions: ${versions:-none}" \
      "or put a copy of the source package somewhere and set KRB5_SOURCE to its directory"
  fi
  mkdir -p "$package"
  # A mirror may name a security revision before it has it.
  for version in $acceptable; do
    say "krb5 source: downloading krb5 $version"
    if (cd "$package" && APT_CONFIG=$apt/start.conf apt-get -q source --download-only \
          "krb5=$version") >> "$log" 2>&1; then
      [ "$version" = "${acceptable%%$'\n'*}" ] ||
        say "krb5 source: WARNING: this is NOT Debian's newest revision, ${acceptable%%$'\n'*};" \
          "remove $package and build again when the mirror has it"
      return
    fi
    say "krb5 source: $version is listed, but cannot be had (log: $log)"
  done
  tail -n 15 "$log" | sed 's/^/    /' >&2
  fail "download failed" "log: $log"
}

# ---- Main ----------------------------------------------------------------------------------------

if [ -n "${KRB5_SOURCE:-}" ]; then
  [ -d "$KRB5_SOURCE" ] || fail "KRB5_SOURCE is not a directory: $KRB5_SOURCE"
  dsc=$(find_dsc "$(cd "$KRB5_SOURCE" && pwd)")
  [ -n "$dsc" ] || fail "no .dsc of krb5 $UPSTREAM for Debian $DEBIAN in KRB5_SOURCE=$KRB5_SOURCE"
else
  mkdir -p "$build/krb5"
  build=$(cd "$build" && pwd)
  package=$build/krb5/package
  dsc=$(find_dsc "$package")
  if [ -z "$dsc" ]; then
    download "$build/krb5/apt-$release" "$package"
    dsc=$(find_dsc "$package")
    [ -n "$dsc" ] || fail "apt-get source left no .dsc in $package"
  fi
fi
verify "$dsc"
echo "$dsc"
