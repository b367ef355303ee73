/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles in key data. The contents are "remote-key:" and the handle, as in a key reference,
 * without the length that krb5 puts in front of an encrypted key. An encrypted key cannot look so:
 * it starts with the key's length, which is below 256.
 */
#ifndef KDC_PLUGIN_KDB_MODULE_HANDLES_H_
#define KDC_PLUGIN_KDB_MODULE_HANDLES_H_

#include <krb5/krb5.h>

#include <kdb.h>
#include <krb5/remote_key_plugin.h>
#include <stdint.h>

/* The handle inside, or NULL if the contents are an encrypted key. */
const uint8_t *handle_in(const krb5_key_data *key_data);

/* Replaces the contents. */
krb5_error_code handle_put(krb5_key_data *key_data, const uint8_t *handle);

/* Whether the entry has a key with this handle; NULL: with any. */
int entry_has_handle(const krb5_db_entry *entry, const uint8_t *handle);

/* Whether the entry has a key of the same enctype and with the same contents, encrypted key or
 * handle. `entry` may be NULL: it has none. */
int entry_has_key(const krb5_db_entry *entry, const krb5_key_data *key_data);

typedef struct handle_list {
    uint8_t (*handles)[KRB5_REMOTE_KEY_HANDLE_LENGTH];
    size_t count;
} handle_list;

/* The handles of the entry's keys that are not in `kept` (may be NULL), with room for one more;
 * handle_list_free() in any case. */
krb5_error_code handle_list_of(const krb5_db_entry *entry, const krb5_db_entry *kept,
                               handle_list *list);

/* Returns ENOMEM, or 0. */
krb5_error_code handle_list_add(handle_list *list, const uint8_t *handle);
int handle_list_has(const handle_list *list, const uint8_t *handle);
void handle_list_free(handle_list *list);

/*
 * In the mask of an entry that is put: its handles are new and on the servers already. Only mpc-kdb
 * sets it, for `set-handles`. No caller of kadmind can: libkadm5 refuses masks with bits that are
 * not its own. (A db_arg would come through: kadmin's -x sends those.)
 */
#define MPC_MASK_SET_HANDLES 0x40000000

/* A login key (login_key.h) is no key data: its handle is a string attribute, in hexadecimal. */
#define LOGIN_KEY_ATTRIBUTE "mpc_login"
#define LOGIN_KEY_KVNO 1
#define LOGIN_KEY_ENCTYPE (-24001)

/* Of an entry that is being renamed (renaming.h): "WORD NAME", a random word and the other name. */
#define RENAMED_FROM_ATTRIBUTE "mpc_renamed_from"
#define RENAMED_TO_ATTRIBUTE "mpc_renamed_to"

/* Copies the handle of the login key; false if the entry has none. */
int login_handle_of(krb5_context context, krb5_db_entry *entry,
                    uint8_t handle[KRB5_REMOTE_KEY_HANDLE_LENGTH]);

#endif /* KDC_PLUGIN_KDB_MODULE_HANDLES_H_ */
