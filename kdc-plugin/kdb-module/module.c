/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The KDB module "mpc". It stores entries through another module and keeps the keys of protected
 * principals out of the database: what is stored for them is a handle. Which functions it changes
 * is in the table at the end; the others pass through.
 */
#include <com_err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

#include "kdc-plugin/kdb-module/entries.h"
#include "kdc-plugin/kdb-module/keys.h"
#include "kdc-plugin/kdb-module/state.h"
#include "kdc-plugin/kdb-module/wrapped.h"
#include "kdc-plugin/provider/provider.h"

/* libkadm5's; weak, since not every program that opens a database has it. */
extern int krb5_klog_syslog(int priority, const char *format, ...)
    __attribute__((weak, format(printf, 2, 3)));

/* krb5kdc's log, to which any thread may write (krb5-patches, 23). com_err would make everything an
 * LOG_INFO there, and an outage is none. */
static void log_all(int priority, const char *text)
{
    if (krb5_klog_syslog != NULL)
        (void)krb5_klog_syslog(priority, "%s", text);
    else
        com_err("mpc", 0, "%s", text);
}

/* Wherever the program's com_err goes: kadmind's log, the terminal of the tools. */
static void log_problems(int priority, const char *text)
{
    if (priority <= LOG_WARNING)
        com_err("mpc", 0, "%s", text);
}

/* krb5kdc's com_err goes to its log; in kadmin.local it would make the command's exit status 1. */
static void warn(const module_state *state, const char *text)
{
    if (state->is_kdc)
        com_err("mpc", 0, "%s", text);
    else
        fprintf(stderr, "mpc: %s\n", text);
}

/* Where krb5kdc counts; NULL if it is not to, or cannot, which is no reason not to serve. */
static kdc_metrics *use_metrics(const module_state *state)
{
    const module_config *config = state->config;
    kdc_metrics_options options = {
        .realm = config->realm,
        .file = config->metrics_file,
        .certificate_files = {config->certificate_file, config->ca_file,
                              config->admin_certificate_file},
        .log = log_all,
    };
    kdc_metrics *metrics;
    char *error = NULL;
    size_t i;

    if (!state->is_kdc || config->metrics_file == NULL)
        return NULL;
    for (i = 0; i < config->triples * MPC_SERVERS; i++)
        options.servers[i] = config->servers[i];
    metrics = kdc_metrics_open(&options, &error);
    if (error != NULL)
        warn(state, error);
    free(error);
    return metrics;
}

static krb5_error_code use_provider(krb5_context context, const module_state *state)
{
    const module_config *config = state->config;
    mpc_options options;

    if (state->is_replica)
        return 0; /* kpropd uses no key */
    if (config->certificate_file == NULL || config->key_file == NULL) {
        if (!state->is_kdc)
            return 0; /* kadmin.local and kdb5_util need no key's use */
        krb5_set_error_message(context, EINVAL,
                               "kdc.conf: mpc_certificate and mpc_key must be set for krb5kdc");
        return EINVAL;
    }
    config_client_options(config, &options);
    options.log = state->is_kdc ? log_all : log_problems;
    options.metrics = use_metrics(state);
    return provider_register(context, &options,
                             state->is_kdc ? CONTEXTS_OF_DATABASES : CONTEXTS_ANY);
}

/* Every process that opens the database with remote keys holds what they open or seal. */
static void harden_process(const module_state *state)
{
    static int said; /* once a process: a database is opened more than once */
    char *warning = mpc_harden_process(state->config->allow_core_dumps);

    if (warning != NULL)
        warn(state, warning);
    mpc_text_free(warning);
    if (state->config->allow_core_dumps && !said++)
        warn(state, "mpc_allow_core_dumps is set: a core of this process holds session keys");
}

/* Our half of opening or creating a database. */
static krb5_error_code open_state(krb5_context context, char *section, int mode)
{
    module_state *state;
    krb5_error_code ret = state_open(context, section, mode, &state);

    if (ret)
        return ret;
    harden_process(state);
    if (!state->is_replica)
        krb5_db_log_by_module(context); /* change.h */
    ret = wrapped_load(context, state->config->wrapped);
    if (ret == 0)
        ret = use_provider(context, state);
    if (ret) {
        provider_forget(context);
        (void)state_close(context);
    }
    return ret;
}

static void close_state(krb5_context context)
{
    provider_forget(context);
    if (state_close(context) == 0)
        provider_unregister();
}

static krb5_error_code mpc_init_library(void)
{
    return 0; /* the configuration says what to load: see open_state */
}

static krb5_error_code mpc_init_module(krb5_context context, char *section, char **db_args,
                                       int mode)
{
    krb5_error_code ret = open_state(context, section, mode);

    if (ret)
        return ret;
    ret = wrapped()->init_module(context, section, db_args, mode);
    if (ret)
        close_state(context);
    return ret;
}

static krb5_error_code mpc_create(krb5_context context, char *section, char **db_args)
{
    krb5_error_code ret = open_state(context, section, KRB5_KDB_SRV_TYPE_ADMIN);

    if (ret)
        return ret;
    ret = wrapped()->create == NULL ? KRB5_PLUGIN_OP_NOTSUPP
                                    : wrapped()->create(context, section, db_args);
    if (ret)
        close_state(context);
    return ret;
}

static krb5_error_code mpc_destroy(krb5_context context, char *section, char **db_args)
{
    module_config *config;
    krb5_error_code ret = config_read(context, section, &config);

    if (ret == 0)
        ret = wrapped_load(context, config->wrapped);
    config_free(config);
    if (ret)
        return ret;
    return wrapped()->destroy == NULL ? KRB5_PLUGIN_OP_NOTSUPP
                                      : wrapped()->destroy(context, section, db_args);
}

static krb5_error_code mpc_fini_module(krb5_context context)
{
    krb5_error_code ret = wrapped() == NULL ? 0 : wrapped()->fini_module(context);

    close_state(context);
    return ret;
}

/* Functions that are NULL here get libkdb5's defaults, as they do in db2, klmdb and kldap. */
__attribute__((visibility("default"))) kdb_vftabl kdb_function_table = {
    .maj_ver = KRB5_KDB_DAL_MAJOR_VERSION,
    .min_ver = 0,
    .init_library = mpc_init_library,
    .fini_library = wrapped_fini_library,
    .init_module = mpc_init_module,
    .fini_module = mpc_fini_module,
    .create = mpc_create,
    .destroy = mpc_destroy,
    .get_principal = entries_get,
    .put_principal = entries_put,
    .delete_principal = entries_delete,
    .rename_principal = entries_rename,
    .encrypt_key_data = keys_encrypt,
    .decrypt_key_data = keys_decrypt,
    .lock = wrapped_lock,
    .unlock = wrapped_unlock,
    .iterate = entries_iterate,
    .create_policy = wrapped_create_policy,
    .get_policy = wrapped_get_policy,
    .put_policy = wrapped_put_policy,
    .iter_policy = wrapped_iter_policy,
    .delete_policy = wrapped_delete_policy,
    .promote_db = wrapped_promote_db,
    .check_policy_as = wrapped_check_policy_as,
    .audit_as_req = wrapped_audit_as_req,
    .check_allowed_to_delegate = wrapped_check_allowed_to_delegate,
};
