/* SPDX-License-Identifier: Apache-2.0 */
/* The database module that really stores the entries, and the functions that only pass through. */
#ifndef KDC_PLUGIN_KDB_MODULE_WRAPPED_H_
#define KDC_PLUGIN_KDB_MODULE_WRAPPED_H_

#include <krb5/krb5.h>

#include <kdb.h>

/*
 * Loads `name` (db2, klmdb or kldap) from the directories of db_module_dir or from this module's own, once
 * per process. A second name in one process is refused.
 */
krb5_error_code wrapped_load(krb5_context context, const char *name);

/* Its table; NULL before wrapped_load has succeeded. */
const kdb_vftabl *wrapped(void);

krb5_error_code wrapped_fini_library(void);

krb5_error_code wrapped_lock(krb5_context context, int mode);
krb5_error_code wrapped_unlock(krb5_context context);
krb5_error_code wrapped_iterate(krb5_context context, char *match,
                                int (*func)(krb5_pointer, krb5_db_entry *), krb5_pointer arg,
                                krb5_flags flags);
krb5_error_code wrapped_create_policy(krb5_context context, osa_policy_ent_t policy);
krb5_error_code wrapped_get_policy(krb5_context context, char *name, osa_policy_ent_t *policy);
krb5_error_code wrapped_put_policy(krb5_context context, osa_policy_ent_t policy);
krb5_error_code wrapped_iter_policy(krb5_context context, char *match,
                                    osa_adb_iter_policy_func func, void *data);
krb5_error_code wrapped_delete_policy(krb5_context context, char *policy);
krb5_error_code wrapped_promote_db(krb5_context context, char *section, char **db_args);
krb5_error_code wrapped_check_policy_as(krb5_context context, krb5_kdc_req *request,
                                        krb5_db_entry *client, krb5_db_entry *server,
                                        krb5_timestamp kdc_time, const char **status,
                                        krb5_pa_data ***e_data);
krb5_error_code wrapped_check_allowed_to_delegate(krb5_context context,
                                                  krb5_const_principal client,
                                                  const krb5_db_entry *server,
                                                  krb5_const_principal proxy);
void wrapped_audit_as_req(krb5_context context, krb5_kdc_req *request,
                          const krb5_address *local_addr, const krb5_address *remote_addr,
                          krb5_db_entry *client, krb5_db_entry *server, krb5_timestamp authtime,
                          krb5_error_code error_code);

#endif /* KDC_PLUGIN_KDB_MODULE_WRAPPED_H_ */
