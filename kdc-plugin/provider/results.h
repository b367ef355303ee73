/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KDC_PLUGIN_PROVIDER_RESULTS_H_
#define KDC_PLUGIN_PROVIDER_RESULTS_H_

#include <krb5/krb5.h>

#include "kdc-plugin/metrics/kdc_metrics.h"
#include "kdc-plugin/provider/request.h"

/* As what an AS-REQ or TGS-REQ counts that ended with `code`; 0: it was served. r may be NULL. */
enum kdc_result result_of(const request *r, krb5_msgtype type, krb5_error_code code);

#endif /* KDC_PLUGIN_PROVIDER_RESULTS_H_ */
