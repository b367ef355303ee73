/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Login keys (mpc_service_logins). The servers seal a TGT only for a client they know. A service
 * keeps its own keys, so it also gets a key that the servers draw and that nobody uses: its handle
 * says who the client is, and its gate (kdc-trusted) says that the KDC, which has the service's
 * keys anyway, verifies the pre-authentication. The handle is a string attribute of the entry
 * (handles.h).
 */
#ifndef KDC_PLUGIN_KDB_MODULE_LOGIN_KEY_H_
#define KDC_PLUGIN_KDB_MODULE_LOGIN_KEY_H_

#include <krb5/krb5.h>

#include <kdb.h>

#include "kdc-plugin/client/mpc_client.h"

/* Whether a principal with local keys may have use for one. */
int login_key_wanted(krb5_const_principal principal);

/* Has a key drawn for `principal` and writes its handle into the entry. On failure *error is a text
 * for mpc_text_free, and the entry is as it was. */
krb5_error_code login_key_add(krb5_context context, const mpc_options *options,
                              krb5_const_principal principal, krb5_db_entry *entry, char **error);

void login_key_forget(krb5_context context, krb5_db_entry *entry);

#endif /* KDC_PLUGIN_KDB_MODULE_LOGIN_KEY_H_ */
