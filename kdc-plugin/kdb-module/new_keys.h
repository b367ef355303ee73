/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The new keys of an entry that is put, those whose handles are staged (staging.h): where they go,
 * and their way to the three servers.
 */
#ifndef KDC_PLUGIN_KDB_MODULE_NEW_KEYS_H_
#define KDC_PLUGIN_KDB_MODULE_NEW_KEYS_H_

#include <krb5/krb5.h>

#include <kdb.h>

#include "kdc-plugin/kdb-module/state.h"

int new_keys_any(const module_state *state, const krb5_db_entry *entry);

/* Where these keys go. Takes those out of the entry that are of no use there. Not
 * PLACE_BY_ENCTYPE. */
placement new_keys_place(module_state *state, krb5_db_entry *entry);

/* Puts them back as krb5 stores them; they are staged no longer. */
void new_keys_restore_stock(module_state *state, krb5_db_entry *entry);

/* Puts them on the servers, all of them or none; a text says why not. They stay staged. */
krb5_error_code new_keys_protect(module_state *state, const krb5_db_entry *entry, placement place);

/* Wipes what is staged of them. */
void new_keys_forget(module_state *state, const krb5_db_entry *entry);

#endif /* KDC_PLUGIN_KDB_MODULE_NEW_KEYS_H_ */
