/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests only: calls of libkadm5 that kadmin has no command for. Built twice: as mpckdc_kadm5_remote
 * it asks kadmind, as mpckdc_kadm5_local it opens the database as kadmin.local does.
 *
 *   CLIENT PASSWORD setkey|setkey3|setkey4 PRINCIPAL ENCTYPE CONTENTS
 *
 * The contents of the key in hexadecimal.
 */
#include <errno.h>
#include <kadm5/admin.h>
#include <krb5/krb5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CONTENTS = 64 };

static unsigned int from_hex(const char *hex, krb5_octet *bytes)
{
    unsigned int count = 0, value;

    while (count < MAX_CONTENTS && sscanf(hex + 2 * count, "%2x", &value) == 1)
        bytes[count++] = (krb5_octet)value;
    return count;
}

static kadm5_ret_t call(void *handle, const char *function, krb5_principal principal,
                        krb5_keyblock *key)
{
    krb5_key_salt_tuple tuple = {key->enctype, KRB5_KDB_SALTTYPE_NORMAL};
    kadm5_key_data data;

    if (strcmp(function, "setkey") == 0)
        return kadm5_setkey_principal(handle, principal, key, 1);
    if (strcmp(function, "setkey3") == 0)
        return kadm5_setkey_principal_3(handle, principal, FALSE, 1, &tuple, key, 1);
    if (strcmp(function, "setkey4") != 0)
        return EINVAL;
    memset(&data, 0, sizeof(data));
    data.key = *key;
    return kadm5_setkey_principal_4(handle, principal, FALSE, &data, 1);
}

int main(int argc, char **argv)
{
    krb5_octet contents[MAX_CONTENTS];
    krb5_keyblock key = {KV5M_KEYBLOCK, 0, 0, contents};
    krb5_principal principal = NULL;
    krb5_context context;
    void *handle = NULL;
    kadm5_ret_t ret;
    const char *text;

    if (argc != 7 || kadm5_init_krb5_context(&context) != 0)
        return 2;
    key.enctype = atoi(argv[5]);
    key.length = from_hex(argv[6], contents);
    ret = kadm5_init_with_password(context, argv[1], argv[2], KADM5_ADMIN_SERVICE, NULL,
                                   KADM5_STRUCT_VERSION, KADM5_API_VERSION_4, NULL, &handle);
    if (ret == 0)
        ret = krb5_parse_name(context, argv[4], &principal);
    if (ret == 0)
        ret = call(handle, argv[3], principal, &key);
    text = krb5_get_error_message(context, (krb5_error_code)ret);
    printf("%s\n", ret == 0 ? "done" : text);
    krb5_free_error_message(context, text);
    krb5_free_principal(context, principal);
    if (handle != NULL)
        kadm5_destroy(handle);
    krb5_free_context(context);
    return ret != 0;
}
