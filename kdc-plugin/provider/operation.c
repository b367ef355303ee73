/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/operation.h"

#include <errno.h>
#include <krb5/remote_key_plugin.h>

#include "kdc-plugin/provider/enctypes.h"
#include "kdc-plugin/provider/errors.h"
#include "kdc-plugin/provider/process_client.h"

krb5_error_code operation_outcome(const operation *op, krb5_error_code ret)
{
    return ret == ENOMEM ? verdict_error(op->context, MPC_UNAVAILABLE, op->what, "out of memory")
                         : ret;
}

krb5_error_code operation_begin(operation *op)
{
    char *error = NULL;
    krb5_error_code ret = 0;

    op->request = request_current(1);
    if (op->request == NULL && krb5_c_remote_key_host()->request_slot() != NULL)
        return ENOMEM;

    if (op->request != NULL)
        op->request->asked = 1;
    op->client = process_client_get(op->context, &error);
    if (op->client == NULL)
        ret = verdict_error(op->context, MPC_UNAVAILABLE, op->what,
                            error == NULL ? "no memory" : error);
    else if (op->request != NULL && !request_is_of(op->request, op->context, op->client))
        ret = verdict_error(op->context, MPC_UNAVAILABLE, op->what,
                            "the request uses keys of two realms");
    mpc_text_free(error);
    return ret;
}

flight *operation_send(const operation *op, mpc_job *job)
{
    request_tell(op->request, job);
    return flight_start(op->client, job);
}

/* A login was refused that asked for its first ticket or reply without a pre-authentication: its
 * gate wants one. krb5kdc asks the client, whatever its entry says. */
static krb5_error_code gate_is_shut(const operation *op, const char *detail)
{
    if (op->context != NULL)
        krb5_set_error_message(op->context, KRB5KDC_ERR_PREAUTH_REQUIRED, "%s: %s", op->what,
                               detail);
    return KRB5KDC_ERR_PREAUTH_REQUIRED;
}

static void ask_for_stream(const operation *op)
{
    krb5_c_remote_key_host()->prefer_stream();
    if (op->request != NULL)
        op->request->try_stream = 1;
}

void operation_note(const operation *op, const mpc_result *result)
{
    if (result->verdict == MPC_UNPROVED)
        ask_for_stream(op);
    if (op->request == NULL)
        return;
    op->request->over_quota |= result->over_quota;
    op->request->replayed |= result->verdict == MPC_REPLAY;
}

krb5_error_code operation_land(const operation *op, const mpc_job *job, flight *f,
                            const mpc_result **result)
{
    enum mpc_verdict verdict;

    *result = (f == NULL) ? NULL : flight_await(f);
    if (*result == NULL)
        return ENOMEM;
    verdict = (*result)->verdict;
    operation_note(op, *result);
    if (verdict == MPC_REFUSED && op->request != NULL && op->request->lost)
        verdict = MPC_UNAVAILABLE; /* the grant pays no more; who is told of a policy gives up */
    if (verdict == MPC_REFUSED && job->operation == MPC_LOGIN && job->open == NULL &&
        job->pa_pk_as_req.size == 0)
        return gate_is_shut(op, (*result)->detail);
    return verdict == MPC_OK ? 0
                             : verdict_error(op->context, verdict, op->what, (*result)->detail);
}

/* Opens the request's pre-authentication again, for the rest of its grant, at whichever triple: the
 * one that gave it is gone, or one of its servers was restarted. Once a request. */
static int regain_grant(const operation *op)
{
    request *r = op->request;
    mpc_open open;
    mpc_job job = {0};
    const mpc_result *result;
    flight *f;
    int regained;

    if (r == NULL || r->regained || r->preauth.message.data == NULL)
        return 0;
    r->regained = 1;
    open = (mpc_open){r->preauth.handle, USAGE_PREAUTH, bytes_of(&r->preauth.message),
                      r->preauth.enctype};
    job.operation = MPC_OPEN_PREAUTH;
    job.client = open.handle;
    job.open = &open;
    f = operation_send(op, &job);
    result = (f == NULL) ? NULL : flight_await(f);
    regained = result != NULL && result->verdict == MPC_OK;
    if (regained)
        r->grant = result->id;
    else if (result == NULL || result->verdict == MPC_UNAVAILABLE || result->verdict == MPC_REPLAY)
        r->lost = 1;
    flight_release(f);
    return regained;
}

krb5_error_code operation_fly(const operation *op, mpc_job *job, flight **f,
                           const mpc_result **result)
{
    *f = operation_send(op, job);
    *result = (*f == NULL) ? NULL : flight_await(*f);
    if (*result != NULL && job->operation == MPC_SEAL_GRANTED &&
        ((*result)->outage || (*result)->verdict == MPC_REFUSED) && regain_grant(op)) {
        flight_release(*f);
        job->grant = op->request->grant;
        *f = operation_send(op, job);
    }
    return operation_land(op, job, *f, result);
}

krb5_error_code operation_land_prepared(const operation *op, const mpc_result **result)
{
    request *r = op->request;
    krb5_error_code ret;

    if (!request_send_prepared(r, op->client))
        return ENOMEM;
    *result = flight_await(r->prepared.flight);
    if (*result == NULL)
        return ENOMEM;
    if ((*result)->verdict != MPC_OK && r->grant != 0)
        return KRB5_PLUGIN_NO_HANDLE;
    ret = operation_land(op, &r->prepared.job, r->prepared.flight, result);
    if (ret == 0 && r->is_as && r->prepared.job.operation != MPC_SEAL_GRANTED)
        r->grant = (*result)->id;
    return ret;
}
