/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests only: calls of the KDB interface in any order, also in orders that libkadm5 never has. The
 * arguments are commands; each prints a line: "ok", what it found, or the error's text.
 *
 *   get NAME                   reads an entry and keeps it
 *   look NAME                  reads an entry
 *   random NAME ENCTYPE        a new random key in the entry that was kept
 *   password NAME ENCTYPE      a new key of the password "sequence"
 *   decrypt NAME               its newest key: "key" or "reference"
 *   extract NAME               the same, asking for the salt
 *   encrypt FROM TO            decrypts FROM's newest key, encrypts it into TO's
 *   move FROM TO               puts FROM's newest key data in place of TO's, without a call
 *   retype NAME ENCTYPE        its newest key data is of that enctype, without a call
 *   tag NAME TYPE              the entry gets tagged data of that type
 *   untag NAME TYPE            and loses it
 *   put NAME
 */
#include <kadm5/admin.h>
#include <kdb.h>
#include <krb5/krb5.h>
#include <krb5/remote_key_plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ENTRIES = 8 };

static krb5_context context;
static struct {
    const char *name;
    krb5_db_entry *entry;
} kept[MAX_ENTRIES];

static krb5_db_entry **slot(const char *name)
{
    int i;

    for (i = 0; i < MAX_ENTRIES - 1 && kept[i].name != NULL; i++)
        if (strcmp(kept[i].name, name) == 0)
            break;
    kept[i].name = name;
    return &kept[i].entry;
}

static krb5_error_code get(const char *name, krb5_db_entry **entry)
{
    krb5_principal principal = NULL;
    krb5_error_code ret = krb5_parse_name(context, name, &principal);

    if (ret == 0)
        ret = krb5_db_get_principal(context, principal, 0, entry);
    krb5_free_principal(context, principal);
    return ret;
}

static krb5_error_code look(const char *name)
{
    krb5_db_entry *entry = NULL;
    krb5_error_code ret = get(name, &entry);

    krb5_db_free_principal(context, entry);
    return ret;
}

static krb5_error_code new_key(krb5_db_entry *entry, int enctype, int random)
{
    krb5_key_salt_tuple tuple = {enctype, KRB5_KDB_SALTTYPE_NORMAL};
    krb5_keyblock *master = &krb5_db_mkey_list_alias(context)->keyblock;
    char password[] = "sequence";

    entry->mask = KADM5_KEY_DATA;
    return random ? krb5_dbe_crk(context, master, &tuple, 1, FALSE, entry)
                  : krb5_dbe_cpw(context, master, &tuple, 1, password, 0, FALSE, entry);
}

static krb5_error_code decrypt(krb5_db_entry *entry, int with_salt, krb5_keyblock *key,
                               const char **found)
{
    krb5_keysalt salt = {0, {KV5M_DATA, 0, NULL}};
    krb5_error_code ret;

    memset(key, 0, sizeof(*key));
    ret = krb5_dbe_decrypt_key_data(context, NULL, &entry->key_data[0], key,
                                    with_salt ? &salt : NULL);
    if (ret == 0)
        *found = krb5_c_is_remote_key(key) ? "reference" : "key";
    krb5_free_data_contents(context, &salt.data);
    return ret;
}

static krb5_error_code encrypt(krb5_db_entry *from, krb5_db_entry *to)
{
    krb5_keyblock *master = &krb5_db_mkey_list_alias(context)->keyblock, key;
    const char *found;
    krb5_error_code ret = decrypt(from, 0, &key, &found);

    if (ret)
        return ret;
    to->mask = KADM5_KEY_DATA;
    ret = krb5_dbe_encrypt_key_data(context, master, &key, NULL, to->key_data[0].key_data_kvno + 1,
                                    &to->key_data[0]);
    krb5_free_keyblock_contents(context, &key);
    return ret;
}

static krb5_error_code move(krb5_db_entry *from, krb5_db_entry *to)
{
    krb5_key_data *a = &from->key_data[0], *b = &to->key_data[0];

    free(b->key_data_contents[0]);
    b->key_data_type[0] = a->key_data_type[0];
    b->key_data_length[0] = a->key_data_length[0];
    b->key_data_contents[0] = malloc(a->key_data_length[0]);
    memcpy(b->key_data_contents[0], a->key_data_contents[0], a->key_data_length[0]);
    to->mask = KADM5_KEY_DATA;
    return 0;
}

/* Tagged data of a type of its own; it comes or goes with the next put. */
static krb5_error_code tag(krb5_db_entry *entry, int type)
{
    krb5_octet contents[] = "tagged";
    krb5_tl_data data = {NULL, (krb5_int16)type, sizeof(contents), contents};

    entry->mask = KADM5_TL_DATA;
    return krb5_dbe_update_tl_data(context, entry, &data);
}

static krb5_error_code untag(krb5_db_entry *entry, int type)
{
    krb5_tl_data **place = &entry->tl_data, *found;

    entry->mask = KADM5_TL_DATA;
    while (*place != NULL && (*place)->tl_data_type != type)
        place = &(*place)->tl_data_next;
    if (*place == NULL)
        return KRB5_KDB_NOENTRY;
    found = *place;
    *place = found->tl_data_next;
    entry->n_tl_data--;
    free(found->tl_data_contents);
    free(found);
    return 0;
}

/* Returns how many arguments the command has. */
static int run(char **argv, krb5_error_code *ret, const char **found)
{
    const char *command = argv[0], *name = argv[1];
    krb5_db_entry **entry = slot(name);
    krb5_keyblock key;

    if (strcmp(command, "look") == 0) {
        *ret = look(name);
    } else if (strcmp(command, "get") == 0) {
        krb5_db_free_principal(context, *entry);
        *entry = NULL;
        *ret = get(name, entry);
    } else if (strcmp(command, "put") == 0) {
        *ret = krb5_db_put_principal(context, *entry);
    } else if (strcmp(command, "decrypt") == 0 || strcmp(command, "extract") == 0) {
        *ret = decrypt(*entry, command[0] == 'e', &key, found);
        krb5_free_keyblock_contents(context, &key);
    } else if (strcmp(command, "retype") == 0) {
        (*entry)->key_data[0].key_data_type[0] = (krb5_int16)atoi(argv[2]);
        return 3;
    } else if (strcmp(command, "move") == 0 || strcmp(command, "encrypt") == 0) {
        *ret = (command[0] == 'm' ? move : encrypt)(*entry, *slot(argv[2]));
        return 3;
    } else if (strcmp(command, "tag") == 0 || strcmp(command, "untag") == 0) {
        *ret = (command[0] == 't' ? tag : untag)(*entry, atoi(argv[2]));
        return 3;
    } else {
        *ret = new_key(*entry, atoi(argv[2]), strcmp(command, "random") == 0);
        return 3;
    }
    return 2;
}

int main(int argc, char **argv)
{
    char user[] = "root/admin", service[] = KADM5_ADMIN_SERVICE;
    void *handle = NULL;
    int i = 1;

    if (kadm5_init_krb5_context(&context) != 0 ||
        kadm5_init_with_password(context, user, NULL, service, NULL, KADM5_STRUCT_VERSION,
                                 KADM5_API_VERSION_4, NULL, &handle) != 0 ||
        kadm5_init_iprop(handle, NULL) != 0)
        return 2;
    while (i + 1 < argc) {
        krb5_error_code ret = 0;
        const char *found = "ok";

        i += run(argv + i, &ret, &found);
        printf("%s\n", ret == 0 ? found : krb5_get_error_message(context, ret));
    }
    for (i = 0; i < MAX_ENTRIES; i++)
        krb5_db_free_principal(context, kept[i].entry);
    kadm5_destroy(handle);
    krb5_free_context(context);
    return 0;
}
