/* SPDX-License-Identifier: Apache-2.0 */
/* Encryption: tickets and replies are sealed, and their tags written, of which a ticket's may come with its
 * reply's. */
#include <errno.h>
#include <krb5/remote_key_plugin.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/provider/enctypes.h"
#include "kdc-plugin/provider/errors.h"
#include "kdc-plugin/provider/operation.h"

static krb5_error_code alloc_plain(unsigned int length, krb5_data *plain)
{
    *plain = (krb5_data){KV5M_DATA, length, malloc(length + 1)};
    return plain->data == NULL ? ENOMEM : 0;
}

static void free_plain(krb5_data *plain)
{
    explicit_bzero(plain->data, plain->length);
    free(plain->data);
}

/* What may be done about a tag. */
enum { TAG_MAY_BE_LATE = 1, SEAL_MAY_BE_REPEATED = 2 };

/* Waits for a tag and writes it to its place; lets go of the flight. KRB5_PLUGIN_NO_HANDLE: it is
 * lost, as when the triple that has the job is gone, and its message may be sealed again. */
static krb5_error_code land_tag(const operation *op, tag_flight *t, uint8_t *place, int may)
{
    const char *detail;
    enum mpc_verdict verdict;
    krb5_error_code ret = 0;

    if (t == NULL)
        return ENOMEM;
    verdict = tag_await(t, place, &detail);
    if (op->request != NULL && verdict == MPC_UNAVAILABLE)
        op->request->lost = 1;
    if (verdict == MPC_UNAVAILABLE && (may & SEAL_MAY_BE_REPEATED))
        ret = KRB5_PLUGIN_NO_HANDLE;
    else if (verdict != MPC_OK)
        ret = verdict_error(op->context, verdict, op->what, detail);
    tag_release(t);
    return ret;
}

/* Lays out the message of one seal of a result and gets its tag: at once, or with that of the reply
 * if it may be late. As land_tag(). */
static krb5_error_code finish_seal(const operation *op, const mpc_result *result, uint32_t index,
                                   krb5_enctype enctype, int may, const krb5_data *plain,
                                   krb5_data *message)
{
    wanted_tag tag = {result->id, index, enctype, {NULL, 0},
                      op->request != NULL ? op->request->id : 0};
    tag_flight *t;
    uint8_t *place;
    krb5_error_code ret;

    ret = gcm_lay_out(&result->seals[index], plain, message, &tag.ciphertext);
    if (ret)
        return ret;
    place = gcm_tag_place(message);
    memset(place, 0, MPC_TAG_BYTES);
    t = tag_start(op->client, &tag);
    if (t == NULL || !(may & TAG_MAY_BE_LATE) || op->request->late.flight != NULL)
        return land_tag(op, t, place, may);
    op->request->late = (late_tag){t, index, *message};
    return 0;
}

/* The job that seals one message by itself. False if the table has none for this request. */
static int plan_seal(const request *r, const mpc_seal *seal, mpc_open *parent, mpc_job *job)
{
    memset(job, 0, sizeof(*job));
    job->seals = seal;
    job->seal_count = 1;
    if (seal->usage == USAGE_AS_REPLY || (r != NULL && r->has_client)) {
        job->client = seal->usage == USAGE_AS_REPLY ? seal->handle : r->client;
        job->grant = r == NULL ? 0 : r->grant;
        job->operation = job->grant != 0 ? MPC_SEAL_GRANTED : MPC_LOGIN;
        if (r != NULL)
            request_add_certificate(r, job);
        return 1;
    }
    if (r == NULL || r->is_as || r->parent.message.data == NULL)
        return 0;
    *parent = (mpc_open){r->parent.handle, USAGE_TICKET, bytes_of(&r->parent.message),
                         r->parent.enctype};
    job->open = parent;
    job->operation = MPC_REISSUE_TICKET;
    return 1;
}

/* As land_tag(). */
static krb5_error_code seal_alone(const operation *op, const mpc_seal *seal, int may,
                                  const krb5_data *plain, krb5_data *message)
{
    mpc_open parent;
    mpc_job job;
    flight *f;
    const mpc_result *result;
    krb5_error_code ret;

    if (!plan_seal(op->request, seal, &parent, &job))
        return verdict_error(op->context, MPC_REFUSED, op->what,
                             "the MPC servers know neither the client nor a parent ticket: enrol "
                             "the client with mpc-admin enroll, or see mpc_service_logins for "
                             "services");
    ret = operation_fly(op, &job, &f, &result);
    if (ret == 0 && gcm_enctype(seal->enctype))
        ret = finish_seal(op, result, 0, seal->enctype, may, plain, message);
    else if (ret == 0)
        ret = cts_take_message(seal->enctype, plain, result->seals[0].message, message);
    flight_release(f);
    return ret;
}

/* Uses a seal of the prepared job. KRB5_PLUGIN_NO_HANDLE: it has none that fits, or as
 * operation_land_prepared and land_tag. */
static krb5_error_code seal_prepared(const operation *op, const mpc_seal *seal,
                                     const krb5_data *plain, krb5_data *message)
{
    request *r = op->request;
    const mpc_result *result;
    uint32_t index;
    krb5_error_code ret;
    int may = SEAL_MAY_BE_REPEATED;

    if (r == NULL || !request_take_seal(r, seal->handle, seal->usage, plain->length, &index))
        return KRB5_PLUGIN_NO_HANDLE;
    ret = operation_land_prepared(op, &result);
    if (ret)
        return ret;
    if (r->tag_may_be_late && seal->usage == USAGE_TICKET)
        may |= TAG_MAY_BE_LATE;
    return finish_seal(op, result, index, seal->enctype, may, plain, message);
}

/* Seals a message by a job of its own; by one more if the first one's tag is lost. */
static krb5_error_code seal_surely(const operation *op, const mpc_seal *seal,
                                   const krb5_data *plain, krb5_data *message)
{
    const unsigned int room = message->length;
    krb5_error_code ret = seal_alone(op, seal, SEAL_MAY_BE_REPEATED, plain, message);

    if (ret != KRB5_PLUGIN_NO_HANDLE)
        return ret;
    message->length = room;
    return seal_alone(op, seal, 0, plain, message);
}

/* Seals a ticket that was handed out without its tag, which is lost, again in its place: it is as
 * long as before. What is in it comes from the keystream that it was sealed with. */
static krb5_error_code seal_late_again(const operation *op, const late_tag *late)
{
    const prepared_job *p = &op->request->prepared;
    mpc_seal seal = p->seals[late->index];
    const mpc_result *first = flight_await(p->flight);
    mpc_result opened = {0};
    krb5_data plain, again = late->message;
    krb5_error_code ret;

    if (first == NULL)
        return ENOMEM;
    seal.max_plaintext = (uint32_t)plain_length(seal.enctype, &again);
    opened.open_keystream =
        (mpc_bytes){first->seals[late->index].keystream.data + MPC_ZERO_BYTES, seal.max_plaintext};
    ret = alloc_plain(seal.max_plaintext, &plain);
    if (ret)
        return ret;
    ret = take_plain(seal.enctype, &again, &opened, &plain);
    if (ret == 0)
        ret = seal_surely(op, &seal, &plain, &again);
    if (ret == 0 && again.length != late->message.length)
        ret = KRB5_BAD_MSIZE;
    free_plain(&plain);
    return ret;
}

/* Writes the tag of the ticket that was handed out without, if there is one. */
static krb5_error_code land_late_tag(const operation *reply)
{
    const operation op = {reply->context, "sealing a ticket", reply->request, reply->client};
    const late_tag late = op.request->late;
    krb5_error_code ret;

    op.request->late.flight = NULL;
    if (late.flight == NULL)
        return 0;
    ret = land_tag(&op, late.flight, gcm_tag_place(&late.message), SEAL_MAY_BE_REPEATED);
    return ret == KRB5_PLUGIN_NO_HANDLE ? seal_late_again(&op, &late) : ret;
}

krb5_error_code provider_encrypt(krb5_context context, void *moddata, krb5_enctype enctype,
                                 const krb5_data *handle, krb5_keyusage usage,
                                 const krb5_data *plain, krb5_data *message)
{
    const mpc_seal seal = {operation_handle(handle), (uint32_t)usage, plain->length, enctype,
                           cts_enctype(enctype) ? bytes_of(plain) : (mpc_bytes){NULL, 0}};
    operation op = {context, usage == USAGE_TICKET ? "sealing a ticket" : "sealing a reply",
                    NULL, NULL};
    const unsigned int room = message->length;
    krb5_error_code ret = check_remote_key(context, enctype, handle);

    (void)moddata;
    if (ret)
        return ret;
    if (usage != USAGE_TICKET && usage != USAGE_AS_REPLY)
        return not_in_table(context, "encrypting", usage);
    ret = check_size(context, op.what, plain->length, enctype, usage);
    if (ret)
        return ret;
    ret = operation_begin(&op);
    if (ret == 0)
        ret = seal_prepared(&op, &seal, plain, message);
    if (ret == KRB5_PLUGIN_NO_HANDLE) {
        message->length = room;
        ret = seal_surely(&op, &seal, plain, message);
    }
    if (ret == 0 && usage == USAGE_AS_REPLY && op.request != NULL)
        ret = land_late_tag(&op);
    return operation_outcome(&op, ret);
}
