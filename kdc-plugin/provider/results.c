/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/results.h"

/* Whether the client proved itself, and may log in. In a TGS-REQ the same codes are about its ticket. */
static enum kdc_result result_of_client(krb5_error_code code, int is_as)
{
    switch (code) {
    case KRB5KDC_ERR_PREAUTH_REQUIRED:
    case KRB5KDC_ERR_MORE_PREAUTH_DATA_REQUIRED:
        return KDC_PREAUTH_REQUIRED;
    case KRB5KDC_ERR_PREAUTH_FAILED:
    case KRB5KRB_AP_ERR_BAD_INTEGRITY:
        return is_as ? KDC_WRONG_PASSWORD : KDC_BAD_TICKET;
    case KRB5KDC_ERR_C_PRINCIPAL_UNKNOWN:
        return KDC_UNKNOWN_CLIENT;
    case KRB5KDC_ERR_NAME_EXP:
    case KRB5KDC_ERR_KEY_EXP:
    case KRB5KDC_ERR_CLIENT_NOTYET:
    case KRB5KDC_ERR_CLIENT_REVOKED:
        return KDC_CLIENT_REFUSED;
    default:
        return KDC_OTHER;
    }
}

/* A ticket that the client showed. */
static int is_of_ticket(krb5_error_code code)
{
    switch (code) {
    case KRB5KRB_AP_ERR_TKT_EXPIRED:
    case KRB5KRB_AP_ERR_TKT_NYV:
    case KRB5KRB_AP_ERR_REPEAT:
    case KRB5KRB_AP_ERR_NOT_US:
    case KRB5KRB_AP_ERR_BADMATCH:
    case KRB5KRB_AP_ERR_MODIFIED:
    case KRB5KRB_AP_ERR_BADKEYVER:
    case KRB5KRB_AP_ERR_NOKEY:
    case KRB5KDC_ERR_TGT_REVOKED:
        return 1;
    default:
        return 0;
    }
}

/* No outage: what the servers did not do they would not do for anybody who comes like this. */
static enum kdc_result result_of_unavailable(const request *r)
{
    if (r == NULL)
        return KDC_UNAVAILABLE;
    return r->try_stream   ? KDC_TRY_STREAM
           : r->over_quota ? KDC_OVER_QUOTA
           : r->replayed   ? KDC_REPLAY
                           : KDC_UNAVAILABLE;
}

/* What the realm does not give to this client, or for this service. */
static int is_of_policy(krb5_error_code code)
{
    switch (code) {
    case KRB5KDC_ERR_POLICY:
    case KRB5KDC_ERR_BADOPTION:
    case KRB5KDC_ERR_CANNOT_POSTDATE:
    case KRB5KDC_ERR_NEVER_VALID:
    case KRB5KDC_ERR_SERVICE_EXP:
    case KRB5KDC_ERR_SERVICE_REVOKED:
    case KRB5KDC_ERR_SERVICE_NOTYET:
    case KRB5KDC_ERR_MUST_USE_USER2USER:
    case KRB5KDC_ERR_PATH_NOT_ACCEPTED:
        return 1;
    default:
        return 0;
    }
}

enum kdc_result result_of(const request *r, krb5_msgtype type, krb5_error_code code)
{
    switch (code) {
    case 0:
        return KDC_OK;
    case KRB5KDC_ERR_SVC_UNAVAILABLE:
        return result_of_unavailable(r);
    case KRB5KRB_AP_ERR_SKEW:
        return KDC_CLOCK_SKEW;
    case KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN:
        return KDC_UNKNOWN_SERVICE;
    case KRB5KDC_ERR_ETYPE_NOSUPP:
    case KRB5KDC_ERR_SUMTYPE_NOSUPP:
    case KRB5KDC_ERR_PADATA_TYPE_NOSUPP:
        return KDC_UNSUPPORTED;
    default:
        break;
    }
    if (is_of_ticket(code))
        return KDC_BAD_TICKET;
    if (is_of_policy(code))
        return KDC_POLICY;
    return result_of_client(code, type == KRB5_AS_REQ);
}
