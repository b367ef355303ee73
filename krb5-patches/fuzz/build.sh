#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the patched krb5 once more, for fuzzing: clang's address and undefined behaviour sanitizers, coverage,
# static libraries. Prints the directory of its built tree (DIRECTORY/src) on stdout.
#
#   build.sh TREE OUT    TREE: the sources of krb5-patches/build.sh (its DIRECTORY/source)
#
# The directory's name is that of TREE's, which has the hash of all that went into it, and a hash of how it is
# built here; if it is there, it is used as it is. JOBS=N: parallel compilers.
set -euo pipefail

tree=$(readlink -f "$1")
mkdir -p "$2"
out=$(readlink -f "$2")/$(basename "$(dirname "$tree")")
jobs=${JOBS:-$(nproc)}

# Not checked: what krb5 does with pointers to shorter structures, as C programmers did (alignment, function),
# its tables' arithmetic of null pointers, copies of no bytes from them (aead.c) and addresses of their members
# (fast_util.c), bits shifted into an int's sign (asn1_k_encode.c). They are on x86-64 what is meant, and
# thousands; a null pointer that is followed ends the program all the same.
sanitize='-g1 -fno-omit-frame-pointer -fsanitize=address,undefined
  -fno-sanitize=alignment,function,pointer-overflow,nonnull-attribute,null,shift-base -fno-sanitize-recover=undefined
  -Wno-error'
flags="-O1 $sanitize -fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping"
# Ciphers, hashes and n-fold do the same whatever an input says, in most of the time: libFuzzer is told nothing
# of their edges and comparisons. A buffer that is too short for them is found all the same.
primitives="-O2 $sanitize"
link='-fsanitize=address,undefined -fprofile-instr-generate'
options='--enable-static --disable-shared --without-system-verto --without-system-et --without-system-ss
  --without-ldap --without-lmdb --without-libedit --without-readline --disable-nls --disable-pkinit
  --with-crypto-impl=builtin --with-tls-impl=no --disable-rpath'
# Raise it when this script builds differently in another way.
recipe=2
out+=-$(echo "$recipe $flags $primitives $link $options" | sha256sum | cut -c1-8)
log=$out.log

configure() {
  rm -rf "$out"
  mkdir -p "$out"
  cp -a "$tree/src" "$out/src"
  cd "$out/src"
  make distclean || true
  local compiler=clang-14
  if command -v ccache > /dev/null; then compiler='ccache clang-14'; fi
  # shellcheck disable=SC2086 # options are words
  ./configure --prefix="$out/install" $options CC="$compiler" CFLAGS="$(echo $flags)" LDFLAGS="$link"
  touch "$out/configured"
}

# Goes on where it was interrupted.
build() {
  [ -e "$out/configured" ] || configure
  local part src=$out/src builtin=$out/src/lib/crypto/builtin
  for part in util include; do make -C "$src/$part" -j "$jobs"; done
  for part in aes camellia des md4 md5 sha1 sha2; do
    make -C "$builtin/$part" -j "$jobs" all-libobjs CFLAGS="$(echo $primitives)"
  done
  make -C "$src/lib/crypto/krb" nfold.o CFLAGS="$(echo $primitives)"
  rm -f "$src/util/support/hashtab.o"
  make -C "$src/util/support" hashtab.o CFLAGS="$(echo $primitives)"
  for part in util/support lib plugins/kdb/db2 kdc; do make -C "$src/$part" -j "$jobs"; done
  touch "$out/complete"
}

# Programs of the build itself leave memory behind.
export ASAN_OPTIONS=detect_leaks=0
fail() {
  tail -n 20 "$log" >&2
  echo "krb5 for fuzzing: see $log" >&2
  exit 1
}
if [ ! -e "$out/complete" ]; then
  build > "$log" 2>&1 &
  wait $! || fail
fi

# Our targets' halves in C, by krb5's own rules, and the KDC without its main() (kdc_fuzz.c has that).
here=$(dirname "$(readlink -f "$0")")
halves=$(cd "$here" && ls ./*.c)
{
  # Nothing remains of a half that has another name now.
  rm -f "$out"/src/kdc/*_fuzz*
  cp "$here"/*.[ch] "$out/src/kdc/"
  # shellcheck disable=SC2086 # names are words
  make -C "$out/src/kdc" ${halves//.c/.o}
  cd "$out/src/kdc"
  # shellcheck disable=SC2046 # names are words
  ar rc libkdc_fuzz.a $(ls ./*.o | grep -v -E '/(main|rtest|t_.*)\.o$')
} >> "$log" 2>&1 &
wait $! || fail
echo "$out"
