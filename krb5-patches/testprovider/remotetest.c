// SPDX-License-Identifier: Apache-2.0

/*
 * A remote key provider for tests, and the KDB module which makes it needed.
 *
 * The module wraps another KDB module.  In krb5kdc it gives out a reference in
 * place of every key but the master key's; in all other programs it changes
 * nothing.  The provider keeps the keys in this process, and makes every
 * operation take KRB5_REMOTETEST_DELAY milliseconds (10 by default), so that
 * requests really wait for each other's operations.
 *
 * Installed as DIR/NAME.so, the module wraps DIR/wrapped/NAME.so.  So a test
 * which knows nothing of it can be made to use it by moving one file.
 *
 * Environment variables, all optional:
 *   KRB5_REMOTETEST_DELAY   milliseconds per operation
 *   KRB5_REMOTETEST_CHATTER  lines that the provider's thread writes to the KDC's
 *                           log after each operation
 *   KRB5_REMOTETEST_OUTAGE  name of a file; while it exists, operations fail
 *                           with KRB5KDC_ERR_SVC_UNAVAILABLE
 *   KRB5_REMOTETEST_GATE    if set, nothing of a login is encrypted before an
 *                           encrypted timestamp was verified
 *   KRB5_REMOTETEST_NO_PRF  if set, the provider has no PRF
 *   KRB5_REMOTETEST_TAMPER  name of a file which tells how to falsify headers of
 *                           TGTs: version, principal, origin-late, origin-early
 *                           or cap
 *   KRB5_REMOTETEST_LATE    if set, the end of a ticket comes with the reply where
 *                           the KDC allows it: "end", the whole ticket anew (and
 *                           falsified, if at all, only then): "again", or "never"
 *   KRB5_REMOTETEST_MAX_RENEWABLE_LIFE  seconds, for the cap in headers
 *   KRB5_REMOTETEST_LEAVE_OUT  name of an enctype, in any program; the module
 *                           leaves out keys of it when it stores an entry
 *   KRB5_REMOTETEST_LOG     name of a file to which operations, hints and ends
 *                           of requests are appended, one a line
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <krb5/krb5.h>
#include <kdb.h>
#include <krb5/remote_key_plugin.h>

#include "remotetest.h"

/*** The wrapped module ***/

static kdb_vftabl wrapped;
static int kdc_contexts; /* contexts opened by a KDC */

kdb_vftabl kdb_function_table;

/* Return true if context was opened by a KDC (which holds references). */
static krb5_boolean
in_kdc(void)
{
    return kdc_contexts > 0;
}

static krb5_error_code
remotetest_init_module(krb5_context context, char *conf_section,
                       char **db_args, int mode)
{
    krb5_error_code ret;

    ret = wrapped.init_module(context, conf_section, db_args, mode);
    if (ret || (mode & 0xff00) != KRB5_KDB_SRV_TYPE_KDC)
        return ret;
    if (kdc_contexts++ == 0)
        ret = remotetest_register();
    return ret;
}

static krb5_error_code
remotetest_fini_module(krb5_context context)
{
    if (kdc_contexts > 0 && --kdc_contexts == 0)
        remotetest_unregister();
    return wrapped.fini_module(context);
}

static krb5_error_code
remotetest_get_principal(krb5_context context, krb5_const_principal princ,
                         unsigned int flags, krb5_db_entry **entry_out)
{
    krb5_error_code ret;
    krb5_db_entry *entry;
    char *name;
    int i;

    ret = wrapped.get_principal(context, princ, flags, entry_out);
    if (ret || !in_kdc())
        return ret;

    /* decrypt_key_data() is not told whose key it decrypts, so remember. */
    entry = *entry_out;
    if (krb5_unparse_name(context, entry->princ, &name) != 0)
        return 0;
    for (i = 0; i < entry->n_key_data; i++)
        remotetest_note_owner(&entry->key_data[i], name);
    krb5_free_unparsed_name(context, name);
    return 0;
}

static krb5_error_code
remotetest_decrypt_key_data(krb5_context context, const krb5_keyblock *mkey,
                            const krb5_key_data *key_data,
                            krb5_keyblock *key_out, krb5_keysalt *salt_out)
{
    krb5_error_code ret;
    const char *owner;
    krb5_keyblock key;

    memset(&key, 0, sizeof(key));
    if (wrapped.decrypt_key_data != NULL) {
        ret = wrapped.decrypt_key_data(context, mkey, key_data, &key,
                                       salt_out);
    } else {
        ret = krb5_dbe_def_decrypt_key_data(context, mkey, key_data, &key,
                                            salt_out);
    }
    if (ret)
        return ret;

    owner = in_kdc() ? remotetest_owner(key_data) : NULL;
    if (owner == NULL || strncmp(owner, "K/M@", 4) == 0) {
        *key_out = key;
        return 0;
    }
    ret = remotetest_make_reference(context, &key, owner, key_out);
    krb5_free_keyblock_contents(context, &key);
    if (ret && salt_out != NULL) {
        free(salt_out->data.data);
        salt_out->data.data = NULL;
    }
    return ret;
}

/* Store an entry without its keys of one enctype, if a test wants that. */
static krb5_error_code
remotetest_put_principal(krb5_context context, krb5_db_entry *entry,
                         char **db_args)
{
    const char *name = getenv("KRB5_REMOTETEST_LEAVE_OUT");
    krb5_enctype left_out;
    krb5_key_data *kd;
    int i, j, count = 0;

    if (name != NULL && krb5_string_to_enctype((char *)name, &left_out) == 0) {
        for (i = 0; i < entry->n_key_data; i++) {
            kd = &entry->key_data[i];
            if (kd->key_data_type[0] != left_out) {
                entry->key_data[count++] = *kd;
                continue;
            }
            for (j = 0; j < kd->key_data_ver; j++)
                free(kd->key_data_contents[j]);
        }
        entry->n_key_data = count;
    }
    return wrapped.put_principal(context, entry, db_args);
}

/* Load the wrapped module when this one is loaded. */
__attribute__((constructor)) static void
load_wrapped(void)
{
    Dl_info info;
    char dir[PATH_MAX], base[PATH_MAX], path[PATH_MAX];
    void *handle, *table = NULL;

    if (dladdr(&kdb_function_table, &info) == 0)
        abort();
    snprintf(dir, sizeof(dir), "%s", info.dli_fname);
    snprintf(base, sizeof(base), "%s", info.dli_fname);
    if ((size_t)snprintf(path, sizeof(path), "%s/wrapped/%s", dirname(dir),
                         basename(base)) >= sizeof(path))
        abort();
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL)
        table = dlsym(handle, "kdb_function_table");
    if (table == NULL) {
        fprintf(stderr, "remotetest: %s\n", dlerror());
        abort();
    }

    memcpy(&wrapped, table, sizeof(wrapped));
    kdb_function_table = wrapped;
    kdb_function_table.init_module = remotetest_init_module;
    kdb_function_table.fini_module = remotetest_fini_module;
    kdb_function_table.get_principal = remotetest_get_principal;
    kdb_function_table.put_principal = remotetest_put_principal;
    kdb_function_table.decrypt_key_data = remotetest_decrypt_key_data;
}
