/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Login keys (mpc_service_logins). The servers seal a TGT only for a client they know. A service
 * keeps its own keys, so it also gets a key that the servers draw and that nobody uses: its handle
 * says who the client is, and its gate (kdc-trusted) says that the KDC, which has the service's
 * keys anyway, verifies the pre-authentication. The handle is a string attribute of the entry
 * (handles.h).
 *
 * WELLKNOWN/ANONYMOUS, if the realm has it, gets one whatever mpc_service_logins says: anonymous
 * clients log in by it, as FAST armor wants it, and nobody else can.
 */
#ifndef KDC_PLUGIN_KDB_MODULE_LOGIN_KEY_H_
#define KDC_PLUGIN_KDB_MODULE_LOGIN_KEY_H_

#include <krb5/krb5.h>

#include <kdb.h>

#include "kdc-plugin/kdb-module/state.h"

/* Gives a principal with local keys its login key, if it has use for one and has none: true, and
 * the handle is in `fresh`. An outage does not keep it from its keys. */
int login_key_provide(module_state *state, krb5_const_principal principal, krb5_db_entry *entry,
                      uint8_t fresh[MPC_HANDLE_BYTES]);

void login_key_forget(krb5_context context, krb5_db_entry *entry);

#endif /* KDC_PLUGIN_KDB_MODULE_LOGIN_KEY_H_ */
