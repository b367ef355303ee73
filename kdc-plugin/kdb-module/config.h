/* SPDX-License-Identifier: Apache-2.0 */
/* The module's relations in a [dbmodules] section of kdc.conf; README.md lists them. */
#ifndef KDC_PLUGIN_KDB_MODULE_CONFIG_H_
#define KDC_PLUGIN_KDB_MODULE_CONFIG_H_

#include <krb5/krb5.h>

#include "kdc-plugin/client/mpc_client.h"

typedef struct module_config {
    char *realm;
    char *wrapped; /* "db2", "klmdb" or "kldap" */
    char *servers[MPC_MAX_TRIPLES * MPC_SERVERS];
    size_t triples;
    char *ca_file;
    char *certificate_file; /* role kdc */
    char *key_file;
    char *admin_certificate_file; /* role admin */
    char *admin_key_file;
    int64_t cluster;     /* -1: any */
    uint32_t timeout_ms;
    int service_logins; /* principals with local keys get a login key (login_key.h) */
    int allow_core_dumps; /* for debugging: cores hold session keys and passwords */
    int counts_logins; /* the wrapped module writes when somebody logs in, or fails to */
    char *metrics_file; /* of krb5kdc; NULL: it is not counted */
    char **protect; /* patterns, NULL-terminated; never NULL itself */
    char **local;
} module_config;

/* Reads [dbmodules] section `section`. On error the message in the context names the relation. */
krb5_error_code config_read(krb5_context context, const char *section, module_config **config_out);
void config_free(module_config *config);

/* The directories named by db_module_dir; NULL-terminated, possibly empty. */
krb5_error_code config_module_dirs(krb5_context context, char ***dirs_out);
void config_free_list(char **list);

/* What the two halves of the client take. Strings are those of the config. */
void config_client_options(const module_config *config, mpc_options *options);
/* Returns EINVAL with a message if the certificate of the role admin is not configured. */
krb5_error_code config_admin_options(krb5_context context, const module_config *config,
                                     mpc_options *options);

#endif /* KDC_PLUGIN_KDB_MODULE_CONFIG_H_ */
