/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be stored. An entry that is put is an entry of libkadm5, whose callers may be delegates
 * over the network, and what the module knows of the operation is guessed (state.h). So nothing is
 * believed but what is in the stored entry of the same principal already, or what this process has
 * staged for this very entry:
 *
 *   in the new entry                      taken if
 *   handle of a key                       staged, or the stored entry has it under that enctype
 *   key in krb5's own form                staged, or stored, or the principal's keys are local
 *   mpc_login                             the stored entry has the same, or the new one has none
 *
 * Two callers may say more: `kdb5_util load` (KADM5_LOAD in the mask), for a dump is believed, and
 * mpc-kdb (MPC_MASK_SET_HANDLES, for handles). Neither bit can come from kadmind.
 *
 * (entries.c also refuses a staged key that was handed out, for a protected principal.)
 *
 * Handles in the password history (KRB5_TL_KADM_DATA) are compared, and when they fall out of it or
 * their principal is deleted the servers delete their keys, if they are keys of that principal. No
 * key is used or given by them, so they are not looked at here. (Nor can kadmind's callers send
 * them: only tagged data of types from 256 on.)
 */
#ifndef KDC_PLUGIN_KDB_MODULE_GUARD_H_
#define KDC_PLUGIN_KDB_MODULE_GUARD_H_

#include <krb5/krb5.h>

#include <kdb.h>

#include "kdc-plugin/kdb-module/state.h"

/* `stored` is the entry as it is in the database, NULL if it is new. Refuses by an error whose text
 * says what to do, before anything has been changed anywhere. */
krb5_error_code guard_put(module_state *state, krb5_db_entry *entry, krb5_db_entry *stored);

/* A key reference that is to be stored as a key: whose is it? Only one of the entry in hand. */
krb5_error_code guard_reference(module_state *state, const krb5_keyblock *reference);

#endif /* KDC_PLUGIN_KDB_MODULE_GUARD_H_ */
