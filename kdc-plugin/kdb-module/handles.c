/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/handles.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

const uint8_t *handle_in(const krb5_key_data *key_data)
{
    const uint8_t *contents = key_data->key_data_contents[0];

    if (contents == NULL || key_data->key_data_length[0] != KRB5_REMOTE_KEY_LENGTH ||
        memcmp(contents, KRB5_REMOTE_KEY_TAG, KRB5_REMOTE_KEY_TAG_LENGTH) != 0)
        return NULL;
    return contents + KRB5_REMOTE_KEY_TAG_LENGTH;
}

krb5_error_code handle_put(krb5_key_data *key_data, const uint8_t *handle)
{
    uint8_t *contents = malloc(KRB5_REMOTE_KEY_LENGTH);

    if (contents == NULL)
        return ENOMEM;
    memcpy(contents, KRB5_REMOTE_KEY_TAG, KRB5_REMOTE_KEY_TAG_LENGTH);
    memcpy(contents + KRB5_REMOTE_KEY_TAG_LENGTH, handle, KRB5_REMOTE_KEY_HANDLE_LENGTH);
    free(key_data->key_data_contents[0]);
    key_data->key_data_contents[0] = contents;
    key_data->key_data_length[0] = KRB5_REMOTE_KEY_LENGTH;
    return 0;
}

int entry_has_handle(const krb5_db_entry *entry, const uint8_t *handle)
{
    int i;

    for (i = 0; i < entry->n_key_data; i++) {
        const uint8_t *other = handle_in(&entry->key_data[i]);

        if (other != NULL && (handle == NULL ||
                              memcmp(other, handle, KRB5_REMOTE_KEY_HANDLE_LENGTH) == 0))
            return 1;
    }
    return 0;
}

int entry_has_key(const krb5_db_entry *entry, const krb5_key_data *key_data)
{
    const krb5_key_data *other;
    int i;

    for (i = 0; entry != NULL && i < entry->n_key_data; i++) {
        other = &entry->key_data[i];
        if (other->key_data_type[0] == key_data->key_data_type[0] &&
            other->key_data_length[0] == key_data->key_data_length[0] &&
            memcmp(other->key_data_contents[0], key_data->key_data_contents[0],
                   key_data->key_data_length[0]) == 0)
            return 1;
    }
    return 0;
}

krb5_error_code handle_list_of(const krb5_db_entry *entry, const krb5_db_entry *kept,
                               handle_list *list)
{
    int i;

    list->count = 0;
    list->handles = calloc(entry->n_key_data + 1, KRB5_REMOTE_KEY_HANDLE_LENGTH);
    if (list->handles == NULL)
        return ENOMEM;
    for (i = 0; i < entry->n_key_data; i++) {
        const uint8_t *handle = handle_in(&entry->key_data[i]);

        if (handle != NULL && (kept == NULL || !entry_has_handle(kept, handle)))
            memcpy(list->handles[list->count++], handle, KRB5_REMOTE_KEY_HANDLE_LENGTH);
    }
    return 0;
}

krb5_error_code handle_list_add(handle_list *list, const uint8_t *handle)
{
    void *larger = realloc(list->handles, (list->count + 1) * KRB5_REMOTE_KEY_HANDLE_LENGTH);

    if (larger == NULL)
        return ENOMEM;
    list->handles = larger;
    memcpy(list->handles[list->count++], handle, KRB5_REMOTE_KEY_HANDLE_LENGTH);
    return 0;
}

int handle_list_has(const handle_list *list, const uint8_t *handle)
{
    size_t i;

    for (i = 0; i < list->count; i++)
        if (memcmp(list->handles[i], handle, KRB5_REMOTE_KEY_HANDLE_LENGTH) == 0)
            return 1;
    return 0;
}

void handle_list_free(handle_list *list)
{
    free(list->handles);
    list->handles = NULL;
    list->count = 0;
}

int login_handle_of(krb5_context context, krb5_db_entry *entry,
                    uint8_t handle[KRB5_REMOTE_KEY_HANDLE_LENGTH])
{
    char *text = NULL;
    size_t length = 0;
    int found;

    if (krb5_dbe_get_string(context, entry, LOGIN_KEY_ATTRIBUTE, &text) != 0 || text == NULL)
        return 0;
    found = sodium_hex2bin(handle, KRB5_REMOTE_KEY_HANDLE_LENGTH, text, strlen(text), NULL,
                           &length, NULL) == 0 &&
            length == KRB5_REMOTE_KEY_HANDLE_LENGTH;
    krb5_dbe_free_string(context, text);
    return found;
}
