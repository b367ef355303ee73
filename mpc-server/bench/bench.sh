#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The main tables of `make bench`, in about two minutes.
#   bench.sh MPC-BENCH DIRECTORY     the same as JSON goes to DIRECTORY
set -eu
bench=$1
to=$2
mkdir -p "$to"

failed=0
table() {  # TITLE NAME ARGUMENTS
  echo
  echo "== $1"
  name=$2
  shift 2
  "$bench" "$@" --brief --save="$to/$name.json" || failed=1
}

"$bench" --version
table 'Channels, beside what each costs without computation' channels \
  aes --channel=all --batch=16384,512 --with-floor --seconds=2
table 'Without sockets: three parties on threads' memory \
  aes --parties=threads --channel=memory --batch=16384,512 --with-floor --seconds=1.5
table 'S-boxes' sboxes aes --sbox=throughput,latency --batch=64,512,16384 --seconds=1.5
table 'Instruction sets' isas aes --isa=all --batch=16384 --seconds=1.5
table 'AES-256' bits aes --bits=256 --batch=512,16384 --seconds=1.5
table 'Large batches' scale aes --batch=4096,65536,262144 --seconds=2
table 'Chunks of a batch' chunks aes --chunk=2048,4096,16384 --slots=1,4 --batch=16384 --seconds=1.5
table 'A ring per core, each alone' workers \
  aes --workers="$(nproc)" --batch=16384,65536 --seconds=2
table 'A ring per core, joined to one batch as in a server' joined \
  aes --workers="$(nproc)" --join --batch=16384,65536 --seconds=2
table 'Zero shares: keyed streams, or exchanged' randomness \
  aes --randomness=keyed,exchanged --batch=16384 --seconds=1.5
table 'Where the time goes' breakdown breakdown --seconds=2
table 'Table 2 of Araki et al.' table2 table2 --seconds=2
echo
echo "As JSON: $to"
exit $failed
