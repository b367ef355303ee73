#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is done once in a new realm: its keys on the servers, the KDC's database. Running it again changes nothing.
set -eu
mpc-admin --config /etc/mpc-kdc/admin.toml init-realm
if [ ! -e /var/lib/krb5kdc/principal ]; then
  # The master key protects handles and local keys; the stash keeps it, and nobody needs to know it.
  password=$(head -c 33 /dev/urandom | base64)
  printf '%s\n%s\n' "$password" "$password" | kdb5_util create -s
fi
