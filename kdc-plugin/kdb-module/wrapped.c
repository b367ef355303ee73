/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dladdr */
#include "kdc-plugin/kdb-module/wrapped.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <profile.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kdc-plugin/kdb-module/config.h"
#include "kdc-plugin/kdb-module/directory.h"
#include "kdc-plugin/kdb-module/handles.h"
#include "kdc-plugin/kdb-module/state.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const kdb_vftabl *table;
static char table_name[32];
static int library_ready; /* we have run its init_library */
static int shared;        /* libkdb5 has loaded the very same object */

const kdb_vftabl *wrapped(void)
{
    return table;
}

/* The directory that this module was loaded from. */
static int own_directory(char *directory, size_t size)
{
    Dl_info info;
    char *slash;

    if (dladdr((void *)wrapped_load, &info) == 0 || info.dli_fname == NULL ||
        strlen(info.dli_fname) >= size)
        return 0;
    strcpy(directory, info.dli_fname);
    slash = strrchr(directory, '/');
    if (slash == NULL)
        return 0;
    *slash = '\0';
    return 1;
}

static void *open_in(const char *directory, const char *name, char *problem, size_t size)
{
    char path[PATH_MAX];
    void *library;

    snprintf(path, sizeof(path), "%s/%s.so", directory, name);
    if (access(path, F_OK) != 0)
        return NULL;
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    shared = library != NULL;
    if (shared)
        return library;
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        snprintf(problem, size, "%s", dlerror());
    return library;
}

static void *find_library(krb5_context context, const char *name, char *problem, size_t size)
{
    char own[PATH_MAX], **dirs = NULL;
    void *library = NULL;
    size_t i;

    snprintf(problem, size, "%s.so is in no directory of db_module_dir", name);
    if (config_module_dirs(context, &dirs) == 0)
        for (i = 0; library == NULL && dirs[i] != NULL; i++)
            library = open_in(dirs[i], name, problem, size);
    config_free_list(dirs);
    if (library == NULL && own_directory(own, sizeof(own)))
        library = open_in(own, name, problem, size);
    return library;
}

static krb5_error_code load(krb5_context context, const char *name)
{
    char problem[512];
    void *library = find_library(context, name, problem, sizeof(problem));
    const kdb_vftabl *found;

    found = library == NULL ? NULL : dlsym(library, "kdb_function_table");
    if (found == NULL) {
        krb5_set_error_message(context, KRB5_KDB_DBTYPE_NOTFOUND,
                               "mpc_wrapped = %s: cannot load that module: %s", name,
                               library == NULL ? problem : "it has no function table");
        return KRB5_KDB_DBTYPE_NOTFOUND;
    }
    if (found->maj_ver != KRB5_KDB_DAL_MAJOR_VERSION) {
        krb5_set_error_message(context, KRB5_KDB_DBTYPE_MISMATCH,
                               "mpc_wrapped = %s: that module has interface version %d, not %d",
                               name, found->maj_ver, KRB5_KDB_DAL_MAJOR_VERSION);
        return KRB5_KDB_DBTYPE_MISMATCH;
    }
    table = found;
    snprintf(table_name, sizeof(table_name), "%s", name);
    return 0;
}

/*
 * Another realm of this process may use db2 without us. libkdb5 then runs db2's init_library and
 * fini_library around its own use of it, and what they make and destroy (a lock) is ours too. So libkdb5
 * has to count us: by a context, never freed, of a realm that is nowhere configured, for which db2 is
 * the default. (klmdb and kldap keep nothing there.)
 */
static void hold_db2(krb5_context context)
{
    static krb5_context holder;
    profile_t profile = NULL;

    if (holder != NULL || krb5_get_profile(context, &profile) != 0)
        return;
    if (krb5_init_context_profile(profile, KRB5_INIT_CONTEXT_KDC, &holder) == 0 &&
        (krb5_set_default_realm(holder, "db2 below the mpc module") != 0 ||
         krb5_db_setup_lib_handle(holder) != 0)) {
        krb5_free_context(holder);
        holder = NULL;
    }
    profile_release(profile);
}

krb5_error_code wrapped_load(krb5_context context, const char *name)
{
    krb5_error_code ret = 0;

    pthread_mutex_lock(&lock);
    if (table == NULL && strcmp(name, "db2") == 0)
        hold_db2(context);
    if (table == NULL)
        ret = load(context, name);
    if (ret == 0 && strcmp(table_name, name) != 0) {
        ret = KRB5_KDB_DBTYPE_MISMATCH;
        krb5_set_error_message(context, ret, "mpc_wrapped = %s: this process uses %s already",
                               name, table_name);
    }
    if (ret == 0 && !library_ready && !(shared && strcmp(name, "db2") == 0)) {
        ret = table->init_library();
        library_ready = ret == 0;
    }
    pthread_mutex_unlock(&lock);
    return ret;
}

krb5_error_code wrapped_fini_library(void)
{
    krb5_error_code ret = 0;

    pthread_mutex_lock(&lock);
    if (library_ready)
        ret = table->fini_library();
    library_ready = 0;
    pthread_mutex_unlock(&lock);
    return ret;
}

/* What only passes through: a function that the wrapped module lacks is not supported here. */
#define PASS_THROUGH(function, parameters, arguments)                                        \
    krb5_error_code wrapped_##function parameters                                            \
    {                                                                                    \
        return table->function == NULL ? KRB5_PLUGIN_OP_NOTSUPP                                 \
                                       : table->function arguments;                      \
    }

PASS_THROUGH(lock, (krb5_context context, int mode), (context, mode))
PASS_THROUGH(unlock, (krb5_context context), (context))
PASS_THROUGH(iterate,
             (krb5_context context, char *match, int (*func)(krb5_pointer, krb5_db_entry *),
              krb5_pointer arg, krb5_flags flags),
             (context, match, func, arg, flags))
PASS_THROUGH(create_policy, (krb5_context context, osa_policy_ent_t policy), (context, policy))
PASS_THROUGH(get_policy, (krb5_context context, char *name, osa_policy_ent_t *policy),
             (context, name, policy))
PASS_THROUGH(put_policy, (krb5_context context, osa_policy_ent_t policy), (context, policy))
PASS_THROUGH(iter_policy,
             (krb5_context context, char *match, osa_adb_iter_policy_func func, void *data),
             (context, match, func, data))
PASS_THROUGH(delete_policy, (krb5_context context, char *policy), (context, policy))
PASS_THROUGH(promote_db, (krb5_context context, char *section, char **db_args),
             (context, section, db_args))
PASS_THROUGH(check_allowed_to_delegate,
             (krb5_context context, krb5_const_principal client, const krb5_db_entry *server,
              krb5_const_principal proxy),
             (context, client, server, proxy))

/* kldap looks a lockout policy up in the directory. */
krb5_error_code wrapped_check_policy_as(krb5_context context, krb5_kdc_req *request,
                                        krb5_db_entry *client, krb5_db_entry *server,
                                        krb5_timestamp kdc_time, const char **status,
                                        krb5_pa_data ***e_data)
{
    if (table->check_policy_as == NULL)
        return KRB5_PLUGIN_OP_NOTSUPP;
    return directory_for_kdc(context, table->check_policy_as(context, request, client, server,
                                                             kdc_time, status, e_data));
}

/* Whether the wrapped module may write after a request that ended like this: each counts only what
 * shows that a password was right or wrong. */
static int is_counted(krb5_context context, krb5_error_code error_code)
{
    const module_state *state = state_of(context);

    if (error_code != 0 && error_code != KRB5KDC_ERR_PREAUTH_FAILED &&
        error_code != KRB5KRB_AP_ERR_BAD_INTEGRITY)
        return 0;
    return state == NULL || state->config->counts_logins;
}

/* When a request is counted: when it came, but not before what was counted already. A request that
 * waited longer than one that came after it would set the entry's clock back, and a lock with it. */
static krb5_timestamp counted_at(const krb5_db_entry *entry, krb5_timestamp came)
{
    /* As unsigned numbers they go beyond 2038, as krb5 has it. */
    const uint32_t failed = (uint32_t)entry->last_failed, succeeded = (uint32_t)entry->last_success;
    const uint32_t last = failed > succeeded ? failed : succeeded;

    return last > (uint32_t)came ? (krb5_timestamp)last : came;
}

/* Whether the client of a login that succeeded has shown its password, whatever its entry says: the
 * servers ask for an encrypted timestamp, too (gate "timestamp"). */
static int servers_saw_password(const krb5_kdc_req *request, const krb5_db_entry *entry,
                                krb5_error_code error_code)
{
    int i, handles = 0;

    for (i = 0; i < entry->n_key_data; i++)
        handles += handle_in(&entry->key_data[i]) != NULL;
    if (error_code != 0 || handles == 0 || request->padata == NULL)
        return 0;
    for (i = 0; request->padata[i] != NULL; i++)
        if (request->padata[i]->pa_type == KRB5_PADATA_ENC_TIMESTAMP)
            return 1;
    return 0;
}

/* Prepares an entry that was just read for being counted in. The wrapped module begins to count
 * failures anew after a success only if the entry requires pre-authentication. (db2 writes that back,
 * and its KDC asks at once from then on.) */
static krb5_timestamp prepare_to_count(const krb5_kdc_req *request, krb5_db_entry *entry,
                                       krb5_timestamp came, krb5_error_code error_code)
{
    if (servers_saw_password(request, entry, error_code))
        entry->attributes |= KRB5_KDB_REQUIRES_PRE_AUTH;
    return counted_at(entry, came);
}

/*
 * db2 counts in the entry it is given and writes all of it back. In krb5kdc that entry was read
 * before the servers were asked; meanwhile kadmind may have changed the password, and other
 * requests may have been counted. So the entry is read again, under the lock of the write (klmdb has
 * none and needs none: it counts elsewhere): what others wrote stays, each failure counts, and a principal
 * that was deleted or renamed does not come back.
 */
void wrapped_audit_as_req(krb5_context context, krb5_kdc_req *request,
                          const krb5_address *local_addr, const krb5_address *remote_addr,
                          krb5_db_entry *client, krb5_db_entry *server, krb5_timestamp authtime,
                          krb5_error_code error_code)
{
    krb5_db_entry *fresh = NULL;
    int locked;

    if (table->audit_as_req == NULL)
        return;
    if (!is_counted(context, error_code)) {
        table->audit_as_req(context, request, local_addr, remote_addr, client, server, authtime,
                            error_code);
        return;
    }
    locked = wrapped_lock(context, KRB5_DB_LOCKMODE_EXCLUSIVE) == 0;
    if (client != NULL && table->get_principal(context, client->princ, 0, &fresh) != 0) {
        krb5_clear_error_message(context);
    } else {
        if (fresh != NULL)
            authtime = prepare_to_count(request, fresh, authtime, error_code);
        table->audit_as_req(context, request, local_addr, remote_addr, fresh, server, authtime,
                            error_code);
    }
    if (locked)
        (void)wrapped_unlock(context);
    krb5_db_free_principal(context, fresh);
}
