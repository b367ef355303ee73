#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make-secrets.sh DIR: certificates of a test authority for compose.yaml, one folder for each container, with the
# names that cert-manager gives them and the owners that the containers' users have. As root, for the owners.
# Running it again renews what ends within a day; the containers take it without a restart.
set -eu
umask 077
dir=${1:?make-secrets.sh DIR}
here=$(cd "$(dirname "$0")" && pwd)
ca=${MPC_CA:-$here/../ca/mpc-ca}
realm=EXAMPLE.COM

"$ca" init "$dir/authority"

# identity FOLDER UID ROLE NAME [mpc-ca's options]: a new folder of files, and a link that is turned to it, so
# that a key and its certificate change at once.
identity() {
  folder=$dir/$1 uid=$2 role=$3 name=$4
  shift 4
  "$ca" issue "$dir/authority" --realm $realm --role "$role" --name "$name" "$@"
  from=$dir/authority/$role-$name
  mkdir -p "$folder"
  cmp -s "$from.pem" "$folder/tls.crt" && cmp -s "$dir/authority/ca.pem" "$folder/ca.crt" && return
  new=..$(date +%s.%N)
  mkdir "$folder/$new"
  cp "$from.pem" "$folder/$new/tls.crt"
  cp "$from.key" "$folder/$new/tls.key"
  cp "$dir/authority/ca.pem" "$folder/$new/ca.crt"
  chmod 0400 "$folder/$new"/*
  old=$(readlink "$folder/..data" || true)
  ln -s "$new" "$folder/..new"
  mv -T "$folder/..new" "$folder/..data"
  for file in tls.crt tls.key ca.crt; do ln -sfn "..data/$file" "$folder/$file"; done
  chown -hR "$uid:$uid" "$folder"
  [ -z "$old" ] || rm -rf "${folder:?}/$old"
}

for party in 0 1 2; do identity p$party 7750 peer p$party --dns p$party; done
identity kdc 7788 kdc kdc
identity kadmin 7788 admin kadmin
identity admin 7788 admin administrator
chmod 0711 "$dir"
