#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks mpc-ca: names, roles, idempotence, bad input. Usage: test-mpc-ca.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ca="$here/mpc-ca"

die() { echo "FAILED: $*" >&2; exit 1; }
refused() { if "$@" >/dev/null 2>&1; then die "accepted: $*"; fi; }

"$ca" init "$dir" >/dev/null
"$ca" issue "$dir" --realm EXAMPLE.COM --role peer --name p0 --dns localhost --ip 127.0.0.1 \
  --ip ::1 >/dev/null
"$ca" issue "$dir" --realm EXAMPLE.COM --role admin --name root >/dev/null

text=$(openssl x509 -in "$dir/peer-p0.pem" -noout -text)
[ "$(echo "$text" | grep -o 'URI:[^,]*')" = "URI:spiffe://EXAMPLE.COM/mpc/peer/p0" ] || die "URI"
echo "$text" | grep -q 'DNS:localhost, IP Address:127.0.0.1' || die "host names"
echo "$text" | grep -q 'NIST CURVE: P-256' || die "curve"
echo "$text" | grep -q 'TLS Web Server Authentication' || die "server purpose"
openssl x509 -in "$dir/admin-root.pem" -noout -text |
  grep -q 'TLS Web Server Authentication' && die "an administrator may act as a server"
openssl verify -CAfile "$dir/ca.pem" "$dir/peer-p0.pem" "$dir/admin-root.pem" >/dev/null
[ "$(stat -c %a "$dir/peer-p0.key")" = 600 ] || die "key mode"

before=$(cat "$dir"/*.pem | sha256sum)
"$ca" init "$dir"
"$ca" issue "$dir" --realm EXAMPLE.COM --role peer --name p0 --dns localhost --ip 127.0.0.1 --ip ::1
[ "$(cat "$dir"/*.pem | sha256sum)" = "$before" ] || die "not idempotent"
"$ca" issue "$dir" --realm EXAMPLE.COM --role peer --name p0 --dns other.example >/dev/null
[ "$(cat "$dir"/*.pem | sha256sum)" != "$before" ] || die "other names, same certificate"

# Half an authority: the other half may be in a safe. Never another one over it.
authority=$(cat "$dir/ca.pem" "$dir/ca.key" | sha256sum)
for half in ca.key ca.pem; do
  mv "$dir/$half" "$dir/safe"
  refused "$ca" init "$dir"
  mv "$dir/safe" "$dir/$half"
done
[ "$(cat "$dir/ca.pem" "$dir/ca.key" | sha256sum)" = "$authority" ] || die "the authority was replaced"

# Several at once make one.
for i in 1 2 3 4 5 6; do "$ca" init "$dir/once" >/dev/null 2>&1 & done
wait
[ "$(openssl x509 -in "$dir/once/ca.pem" -noout -pubkey)" = \
  "$(openssl pkey -in "$dir/once/ca.key" -pubout)" ] || die "an authority of two"

# As after a renewal that was killed between key and certificate.
cp "$dir/peer-p0.key" "$dir/admin-root.key"
"$ca" issue "$dir" --realm EXAMPLE.COM --role admin --name root >/dev/null
[ "$(openssl x509 -in "$dir/admin-root.pem" -noout -pubkey)" = \
  "$(openssl pkey -in "$dir/admin-root.key" -pubout)" ] || die "half a renewal stays"

key=$(sha256sum < "$dir/admin-root.key")
"$ca" issue "$dir" --realm EXAMPLE.COM --role admin --name root --renew --same-key >/dev/null
[ "$(sha256sum < "$dir/admin-root.key")" = "$key" ] || die "--same-key made another"
[ "$(openssl x509 -in "$dir/admin-root.pem" -noout -pubkey)" = \
  "$(openssl pkey -in "$dir/admin-root.key" -pubout)" ] || die "certificate of another key"
"$ca" issue "$dir" --realm EXAMPLE.COM --role admin --name root --renew >/dev/null
[ "$(sha256sum < "$dir/admin-root.key")" != "$key" ] || die "--renew kept the key"
refused "$ca" issue "$dir" --realm EXAMPLE.COM --role admin --name none --same-key

"$ca" issue "$dir" --realm EXAMPLE.COM --role admin --name late --expired >/dev/null
openssl x509 -in "$dir/admin-late.pem" -noout -checkend 0 >/dev/null && die "not expired"
"$ca" show "$dir" | grep -q EXPIRED || die "show hides an expired certificate"
[ "$("$ca" fingerprint "$dir/ca.pem" | wc -c)" = 65 ] || die "fingerprint"

# A key that stays where it was made, and a request that asks for more than it gets.
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$dir/elsewhere.key" \
  -subj /CN=any -addext 'subjectAltName = URI:spiffe://EXAMPLE.COM/mpc/admin/root' \
  -out "$dir/request" 2>/dev/null
"$ca" issue "$dir" --realm EXAMPLE.COM --role kdc --name kdc1 --csr "$dir/request" >/dev/null
[ ! -e "$dir/kdc-kdc1.key" ] || die "a key where none can be"
[ "$(openssl x509 -in "$dir/kdc-kdc1.pem" -noout -pubkey)" = \
  "$(openssl pkey -in "$dir/elsewhere.key" -pubout)" ] || die "another key than the request's"
[ "$(openssl x509 -in "$dir/kdc-kdc1.pem" -noout -text | grep -o 'URI:[^,]*')" = \
  "URI:spiffe://EXAMPLE.COM/mpc/kdc/kdc1" ] || die "the request chose a name"
openssl verify -CAfile "$dir/ca.pem" "$dir/kdc-kdc1.pem" >/dev/null

refused "$ca" issue "$dir" --realm EXAMPLE.COM --role kdc --name x --csr "$dir/ca.pem"
refused "$ca" issue "$dir" --realm EXAMPLE.COM --role kdc --name x --csr "$dir/no-such-file"
refused "$ca" issue "$dir" --realm EXAMPLE.COM --role root --name x
refused "$ca" issue "$dir" --realm EXAMPLE.COM --role peer --name x
refused "$ca" issue "$dir" --realm 'A,URI:spiffe://B' --role kdc --name x
refused "$ca" issue "$dir" --realm EXAMPLE.COM --role kdc --name 'x/../y'
refused "$ca" issue "$dir" --realm EXAMPLE.COM --role kdc --name x --days soon
refused "$ca" issue "$dir/none" --realm EXAMPLE.COM --role kdc --name x
refused "$ca"
echo "mpc-ca: all good"
