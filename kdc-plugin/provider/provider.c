/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/provider.h"

#include <errno.h>
#include <krb5/remote_key_plugin.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/provider/enctypes.h"
#include "kdc-plugin/provider/errors.h"
#include "kdc-plugin/provider/process_client.h"
#include "kdc-plugin/provider/request.h"
#include "kdc-plugin/provider/waiting.h"

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

static const uint8_t *handle_bytes(const krb5_data *handle)
{
    return (const uint8_t *)handle->data;
}

/* One operation of the KDC's on its way to the servers. */
typedef struct operation {
    krb5_context context;
    const char *what; /* for messages */
    request *request; /* that it is part of; may be NULL */
    mpc_client *client;
} operation;

/* What the caller of an operation gets: a lack of memory is an outage like any other, and says nothing
 * about a client. */
static krb5_error_code outcome(const operation *op, krb5_error_code ret)
{
    return ret == ENOMEM ? verdict_error(op->context, MPC_UNAVAILABLE, op->what, "out of memory")
                         : ret;
}

/* Gets the request, in which each operation leaves what later ones need, and the job client of the
 * context's realm; an outage if there is none. */
static krb5_error_code begin(operation *op)
{
    char *error = NULL;
    krb5_error_code ret = 0;

    op->request = request_current(1);
    if (op->request == NULL && krb5_c_remote_key_host()->request_slot() != NULL)
        return ENOMEM;

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

/* Sends a job for the request being processed. As flight_start(). */
static flight *send_job(const operation *op, mpc_job *job)
{
    request_tell_source(op->request, job);
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

/* Waits for the flight of a job. On success *result belongs to it. */
static krb5_error_code land(const operation *op, const mpc_job *job, flight *f,
                            const mpc_result **result)
{
    enum mpc_verdict verdict;

    *result = (f == NULL) ? NULL : flight_await(f);
    if (*result == NULL)
        return ENOMEM;
    verdict = (*result)->verdict;
    if (verdict == MPC_UNPROVED)
        krb5_c_remote_key_host()->prefer_stream();
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
    f = send_job(op, &job);
    result = (f == NULL) ? NULL : flight_await(f);
    regained = result != NULL && result->verdict == MPC_OK;
    if (regained)
        r->grant = result->id;
    else if (result == NULL || result->verdict == MPC_UNAVAILABLE || result->verdict == MPC_REPLAY)
        r->lost = 1;
    flight_release(f);
    return regained;
}

/* Sends a job of its own and waits for it; *f is to be released. One whose grant is lost is sent
 * once more. */
static krb5_error_code fly(const operation *op, mpc_job *job, flight **f,
                           const mpc_result **result)
{
    *f = send_job(op, job);
    *result = (*f == NULL) ? NULL : flight_await(*f);
    if (*result != NULL && job->operation == MPC_SEAL_GRANTED &&
        ((*result)->outage || (*result)->verdict == MPC_REFUSED) && regain_grant(op)) {
        flight_release(*f);
        job->grant = op->request->grant;
        *f = send_job(op, job);
    }
    return land(op, job, *f, result);
}

/* ---- decrypt ---- */

/* Opens a message by the job that was prepared for it, or else by one of its own. */
static krb5_error_code open_message(const operation *op, const mpc_open *open,
                                    const krb5_data *cipher, krb5_data *plain, uint64_t *job_id)
{
    request *r = op->request;
    const int prepared = r != NULL && request_has_open(r, open->handle, open->usage, cipher);
    mpc_job job = {0};
    flight *f;
    const mpc_result *result;
    krb5_error_code ret;

    if (prepared) {
        f = request_send_prepared(r, op->client) ? r->prepared.flight : NULL;
    } else {
        job.operation = open->usage == USAGE_PREAUTH ? MPC_OPEN_PREAUTH : MPC_OPEN_TICKET;
        job.client = open->usage == USAGE_PREAUTH ? open->handle : NULL;
        job.open = open;
        f = send_job(op, &job);
    }
    ret = land(op, prepared ? &r->prepared.job : &job, f, &result);
    if (ret == 0) {
        *job_id = result->id;
        ret = take_plain(open->enctype, cipher, result, plain);
    }
    if (!prepared)
        flight_release(f);
    return ret;
}

static krb5_error_code provider_decrypt(krb5_context context, void *moddata, krb5_enctype enctype,
                                        const krb5_data *handle, krb5_keyusage usage,
                                        const krb5_data *cipher, krb5_data *plain)
{
    const mpc_open open = {handle_bytes(handle), (uint32_t)usage, bytes_of(cipher), enctype};
    operation op = {context, usage == USAGE_PREAUTH ? "verifying a pre-authentication"
                                                    : "opening a ticket", NULL, NULL};
    request *r;
    uint64_t id = 0;
    krb5_error_code ret = check_remote_key(context, enctype, handle);

    (void)moddata;
    if (ret)
        return ret;
    if (usage != USAGE_PREAUTH && usage != USAGE_TICKET)
        return not_in_table(context, "decrypting", usage);
    if (plain_length(enctype, cipher) < 0)
        return wrong_size(context, op.what, cipher->length, enctype);
    ret = begin(&op);
    if (ret == 0)
        ret = open_message(&op, &open, cipher, plain, &id);
    r = op.request;
    if (ret || r == NULL)
        return outcome(&op, ret);
    if (usage == USAGE_PREAUTH) {
        r->grant = id;
        r->has_client = 1;
        memcpy(r->client, open.handle, MPC_HANDLE_BYTES);
        request_remember_preauth(r, enctype, open.handle, cipher);
    } else if (!r->is_as && !request_remember_parent(r, enctype, open.handle, cipher)) {
        return outcome(&op, ENOMEM);
    }
    return 0;
}

/* ---- encrypt ---- */

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
                                   int may, const krb5_data *plain, krb5_data *message)
{
    mpc_bytes ciphertext;
    tag_flight *t;
    uint8_t *place;
    krb5_error_code ret;

    ret = gcm_lay_out(&result->seals[index], plain, message, &ciphertext);
    if (ret)
        return ret;
    place = gcm_tag_place(message);
    memset(place, 0, MPC_TAG_BYTES);
    t = tag_start(op->client, result->id, index, ciphertext);
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
    ret = fly(op, &job, &f, &result);
    if (ret == 0 && gcm_enctype(seal->enctype))
        ret = finish_seal(op, result, 0, may, plain, message);
    else if (ret == 0)
        ret = cts_take_message(seal->enctype, plain, result->seals[0].message, message);
    flight_release(f);
    return ret;
}

/* Sends the prepared job if it was not sent yet, and waits for it. KRB5_PLUGIN_NO_HANDLE: it failed
 * and a later job has passed the gate. */
static krb5_error_code land_prepared(const operation *op, const mpc_result **result)
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
    ret = land(op, &r->prepared.job, r->prepared.flight, result);
    if (ret == 0 && r->is_as && r->prepared.job.operation != MPC_SEAL_GRANTED)
        r->grant = (*result)->id;
    return ret;
}

/* Uses a seal of the prepared job. KRB5_PLUGIN_NO_HANDLE: it has none that fits, or as
 * land_prepared and land_tag. */
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
    ret = land_prepared(op, &result);
    if (ret)
        return ret;
    if (r->tag_may_be_late && seal->usage == USAGE_TICKET)
        may |= TAG_MAY_BE_LATE;
    return finish_seal(op, result, index, may, plain, message);
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

static krb5_error_code provider_encrypt(krb5_context context, void *moddata, krb5_enctype enctype,
                                        const krb5_data *handle, krb5_keyusage usage,
                                        const krb5_data *plain, krb5_data *message)
{
    const mpc_seal seal = {handle_bytes(handle), (uint32_t)usage, plain->length, enctype,
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
    ret = begin(&op);
    if (ret == 0)
        ret = seal_prepared(&op, &seal, plain, message);
    if (ret == KRB5_PLUGIN_NO_HANDLE) {
        message->length = room;
        ret = seal_surely(&op, &seal, plain, message);
    }
    if (ret == 0 && usage == USAGE_AS_REPLY && op.request != NULL)
        ret = land_late_tag(&op);
    return outcome(&op, ret);
}

/* ---- checksums ---- */

static krb5_error_code copy_mac(const mpc_result *result, krb5_data *out)
{
    if (out->length < result->mac_size)
        return KRB5_BAD_MSIZE;
    memcpy(out->data, result->mac, result->mac_size);
    out->length = (unsigned int)result->mac_size;
    return 0;
}

/* The checksum of the AS-REQ that was announced; KRB5_PLUGIN_NO_HANDLE as in seal_prepared. */
static krb5_error_code mac_prepared(const operation *op, const uint8_t *handle,
                                    const krb5_data *input, krb5_data *out)
{
    const mpc_result *result;
    krb5_error_code ret;

    if (op->request == NULL || !request_has_mac(op->request, handle, input))
        return KRB5_PLUGIN_NO_HANDLE;
    ret = land_prepared(op, &result);
    return ret ? ret : copy_mac(result, out);
}

static krb5_error_code mac_alone(const operation *op, const mpc_make_mac *mac, krb5_data *out)
{
    mpc_job job = {0};
    flight *f;
    const mpc_result *result;
    krb5_error_code ret;

    job.make_mac = mac;
    job.operation = MPC_MAKE_CHECKSUM;
    if (mac->usage == USAGE_AS_REQ_CHECKSUM) {
        job.client = mac->handle;
        job.grant = op->request == NULL ? 0 : op->request->grant;
        job.operation = job.grant != 0 ? MPC_SEAL_GRANTED : MPC_LOGIN;
    }
    ret = fly(op, &job, &f, &result);
    if (ret == 0)
        ret = copy_mac(result, out);
    flight_release(f);
    return ret;
}

/* The client is told; it was the only one to say anything so long. */
static krb5_error_code too_long(const operation *op, unsigned int length, unsigned int max)
{
    if (op->context != NULL)
        krb5_set_error_message(op->context, KRB5KRB_ERR_FIELD_TOOLONG,
                               "%s: of %u bytes; the MPC servers make one of at most %u under this "
                               "key", op->what, length, max);
    return KRB5KRB_ERR_FIELD_TOOLONG;
}

/* Of authorization data: PACs, and the verifiers of authentication indicators (RFC 7751). */
static int is_authdata_usage(krb5_keyusage usage)
{
    return usage == USAGE_PAC_CHECKSUM || usage == USAGE_CAMMAC;
}

static krb5_error_code provider_make_checksum(krb5_context context, void *moddata,
                                              krb5_enctype enctype, const krb5_data *handle,
                                              krb5_keyusage usage, krb5_cksumtype type,
                                              const krb5_data *input, krb5_data *out)
{
    const mpc_make_mac mac = {handle_bytes(handle), (uint32_t)usage, bytes_of(input), enctype};
    operation op = {context, "making a checksum", NULL, NULL};
    krb5_error_code ret = check_checksum_type(context, enctype, handle, type);

    (void)moddata;
    if (ret)
        return ret;
    if (!is_authdata_usage(usage) && usage != USAGE_AS_REQ_CHECKSUM)
        return not_in_table(context, op.what, usage);
    if (input->length > max_checksummed(enctype, usage))
        return too_long(&op, input->length, max_checksummed(enctype, usage));
    ret = begin(&op);
    if (ret == 0)
        ret = usage == USAGE_AS_REQ_CHECKSUM ? mac_prepared(&op, mac.handle, input, out)
                                             : KRB5_PLUGIN_NO_HANDLE;
    if (ret == KRB5_PLUGIN_NO_HANDLE)
        ret = mac_alone(&op, &mac, out);
    return outcome(&op, ret);
}

static krb5_error_code provider_verify_checksum(krb5_context context, void *moddata,
                                                krb5_enctype enctype, const krb5_data *handle,
                                                krb5_keyusage usage, krb5_cksumtype type,
                                                const krb5_data *input, const krb5_data *cksum,
                                                krb5_boolean *valid)
{
    const mpc_verify_mac mac = {handle_bytes(handle), (uint32_t)usage, bytes_of(input),
                                bytes_of(cksum)};
    operation op = {context, "verifying a checksum", NULL, NULL};
    mpc_job job = {0};
    const mpc_result *result;
    flight *f;
    krb5_error_code ret = check_checksum_type(context, enctype, handle, type);

    (void)moddata;
    *valid = FALSE;
    if (ret)
        return ret;
    if (!is_authdata_usage(usage))
        return not_in_table(context, op.what, usage);
    ret = begin(&op);
    if (ret)
        return outcome(&op, ret);
    job.operation = MPC_VERIFY_CHECKSUM;
    job.verify_mac = &mac;
    f = flight_start(op.client, &job);
    result = (f == NULL) ? NULL : flight_await(f);
    if (result == NULL)
        ret = ENOMEM;
    else if (result->verdict == MPC_OK)
        *valid = TRUE;
    else if (result->verdict != MPC_BAD_TAG)
        ret = verdict_error(context, result->verdict, op.what, result->detail);
    flight_release(f);
    return outcome(&op, ret);
}

/* ---- hints ---- */

/* Sends what a hint prepared; without pre-authentication a login waits until it is needed, since
 * most such requests end with "pre-authentication required". */
static void send_early(krb5_context context, request *r)
{
    char *error = NULL;
    mpc_client *client;

    if (r->prepared.job.operation == 0 || r->prepared.job.open == NULL)
        return;
    client = process_client_get(context, &error);
    mpc_text_free(error); /* the operation itself will report it */
    if (client != NULL && request_is_of(r, context, client))
        request_send_prepared(r, client);
}

static void provider_hint_as(krb5_context context, void *moddata,
                             const krb5_remote_key_as_hint *hint)
{
    request *r = request_current(1);

    (void)moddata;
    if (r == NULL)
        return;
    request_take_as_hint(r, hint);
    send_early(context, r);
}

static void provider_hint_tgs(krb5_context context, void *moddata,
                              const krb5_remote_key_tgs_hint *hint)
{
    request *r = request_current(1);

    (void)moddata;
    if (r == NULL)
        return;
    request_take_tgs_hint(r, hint);
    send_early(context, r);
}

static void provider_request_done(void *moddata, void *state)
{
    (void)moddata;
    request_free(state);
}

static void provider_flush(void *moddata)
{
    (void)moddata;
    waiting_flush();
}

/* No prf: its output under a user's key is as good as the password. */
static const krb5_remote_key_vtable vtable = {
    .version = KRB5_REMOTE_KEY_VTABLE_VERSION,
    .encrypt = provider_encrypt,
    .decrypt = provider_decrypt,
    .make_checksum = provider_make_checksum,
    .verify_checksum = provider_verify_checksum,
    .hint_as = provider_hint_as,
    .hint_tgs = provider_hint_tgs,
    .request_done = provider_request_done,
    .flush = provider_flush,
};

krb5_error_code provider_register(krb5_context context, const mpc_options *options,
                                  client_contexts contexts)
{
    if (krb5_c_remote_key_host()->version != KRB5_REMOTE_KEY_HOST_VERSION) {
        krb5_set_error_message(context, KRB5_PLUGIN_VER_NOTSUPP,
                               "this module was built for another version of the patched krb5");
        return KRB5_PLUGIN_VER_NOTSUPP;
    }
    if (process_client_configure(context, options, contexts) != 0) {
        krb5_set_error_message(context, EINVAL,
                               "realm %s is served by other MPC servers in this process already, "
                               "or there is no memory", options->realm);
        return EINVAL;
    }
    return krb5_c_register_remote_keys(&vtable, NULL);
}

void provider_forget(krb5_context context)
{
    process_client_forget(context);
    source_forget(context);
}

void provider_note_client(const uint8_t handle[MPC_HANDLE_BYTES])
{
    request *r = request_current(1);

    if (r != NULL)
        request_note_client(r, handle);
}

void provider_unregister(void)
{
    krb5_c_register_remote_keys(NULL, NULL);
    process_client_stop();
}
