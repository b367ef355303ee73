/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KDC_PLUGIN_PROVIDER_ERRORS_H_
#define KDC_PLUGIN_PROVIDER_ERRORS_H_

#include <krb5/krb5.h>

#include "kdc-plugin/client/mpc_client.h"

/*
 * The krb5 error of a verdict that is not MPC_OK, with a message in the context. Outages and
 * refusals are logged too, at most LOG_LINES_PER_PERIOD lines in LOG_PERIOD seconds of what clients
 * can bring about, and as many of the rest.
 */
krb5_error_code verdict_error(krb5_context context, enum mpc_verdict verdict, const char *what,
                              const char *detail);

/* The error of an operation that is not in the closed table. */
krb5_error_code not_in_table(krb5_context context, const char *what, int usage);

enum { LOG_LINES_PER_PERIOD = 10, LOG_PERIOD = 10 };

#endif /* KDC_PLUGIN_PROVIDER_ERRORS_H_ */
