/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests only: a kadm5_hook module that does, just before libkadm5 stores a new password or a new
 * principal, what the environment says:
 *   HOOK_GET=NAME   reads another entry
 *   HOOK_SET=NAME   writes another entry, without new keys
 *   HOOK_CPW=NAME   gives another principal a new password, "hooked"
 *   HOOK_RUN=COMMAND
 *   HOOK_FAIL=1     refuses the operation
 */
#include <errno.h>
#include <kadm5/admin.h>
#include <kdb.h>
#include <krb5/kadm5_hook_plugin.h>
#include <krb5/krb5.h>
#include <stdio.h>
#include <stdlib.h>

static krb5_error_code give_password(krb5_context context, krb5_db_entry *entry)
{
    krb5_key_salt_tuple tuple = {-24001, KRB5_KDB_SALTTYPE_NORMAL};
    krb5_keylist_node *masters = krb5_db_mkey_list_alias(context);
    char password[] = "hooked";

    entry->mask = KADM5_KEY_DATA;
    return krb5_dbe_cpw(context, &masters->keyblock, &tuple, 1, password, 0, FALSE, entry);
}

static krb5_error_code touch(krb5_context context, const char *name, int put, int new_password)
{
    krb5_principal principal = NULL;
    krb5_db_entry *entry = NULL;
    krb5_error_code ret;

    if (name == NULL)
        return 0;
    ret = krb5_parse_name(context, name, &principal);
    if (ret == 0)
        ret = krb5_db_get_principal(context, principal, 0, &entry);
    if (ret == 0 && new_password)
        ret = give_password(context, entry);
    if (ret == 0 && put)
        ret = krb5_db_put_principal(context, entry);
    if (ret)
        fprintf(stderr, "hook: %s: error %ld\n", name, (long)ret);
    krb5_db_free_principal(context, entry);
    krb5_free_principal(context, principal);
    return ret;
}

static kadm5_ret_t before(krb5_context context, int stage)
{
    krb5_error_code ret;

    if (stage != KADM5_HOOK_STAGE_PRECOMMIT)
        return 0;
    ret = touch(context, getenv("HOOK_GET"), 0, 0);
    if (ret == 0)
        ret = touch(context, getenv("HOOK_SET"), 1, 0);
    if (ret == 0)
        ret = touch(context, getenv("HOOK_CPW"), 1, 1);
    if (ret == 0 && getenv("HOOK_RUN") != NULL && system(getenv("HOOK_RUN")) != 0)
        ret = EINVAL;
    if (ret == 0 && getenv("HOOK_FAIL") != NULL)
        ret = EPERM;
    return ret;
}

static kadm5_ret_t on_chpass(krb5_context context, kadm5_hook_modinfo *info, int stage,
                             krb5_principal principal, krb5_boolean keepold, int count,
                             krb5_key_salt_tuple *tuples, const char *password)
{
    return before(context, stage);
}

static kadm5_ret_t on_create(krb5_context context, kadm5_hook_modinfo *info, int stage,
                             kadm5_principal_ent_t entry, long mask, int count,
                             krb5_key_salt_tuple *tuples, const char *password)
{
    return before(context, stage);
}

static kadm5_ret_t on_modify(krb5_context context, kadm5_hook_modinfo *info, int stage,
                             kadm5_principal_ent_t entry, long mask)
{
    return before(context, stage);
}

krb5_error_code kadm5_hook_test_initvt(krb5_context context, int maj_ver, int min_ver,
                                       krb5_plugin_vtable vtable)
{
    kadm5_hook_vftable_1 *table = (kadm5_hook_vftable_1 *)vtable;

    if (maj_ver != 1)
        return KRB5_PLUGIN_VER_NOTSUPP;
    table->name = "test";
    table->chpass = on_chpass;
    table->create = on_create;
    table->modify = on_modify;
    return 0;
}
