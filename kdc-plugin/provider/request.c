/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/request.h"

#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/provider/enctypes.h"

request *request_current(int create)
{
    void **slot = krb5_c_remote_key_host()->request_slot();

    if (slot == NULL)
        return NULL;
    if (*slot == NULL && create)
        *slot = calloc(1, sizeof(request));
    return *slot;
}

static void free_copy(krb5_data *data)
{
    free(data->data);
    data->data = NULL;
    data->length = 0;
}

static void prepared_clear(prepared_job *job)
{
    flight_release(job->flight);
    free_copy(&job->open.message);
    free_copy(&job->mac.data);
    memset(job, 0, sizeof(*job));
}

void request_free(request *r)
{
    if (r == NULL)
        return;
    prepared_clear(&r->prepared);
    tag_release(r->late.flight);
    free_copy(&r->parent.message);
    free(r);
}

static int copy_data(const krb5_data *from, krb5_data *to)
{
    to->magic = KV5M_DATA;
    to->length = from->length;
    to->data = malloc(from->length + 1);
    if (to->data == NULL)
        return 0;
    if (from->length > 0)
        memcpy(to->data, from->data, from->length);
    return 1;
}

static int same_data(const krb5_data *a, const krb5_data *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->data, b->data, a->length) == 0);
}

static int same_handle(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, MPC_HANDLE_BYTES) == 0;
}

/* Copies the handle of a reference; false if there is no key or it is local. */
static int handle_of(const krb5_keyblock *key, uint8_t *handle)
{
    krb5_data data;

    if (key == NULL || krb5_c_remote_key_handle(key, &data) != 0)
        return 0;
    memcpy(handle, data.data, MPC_HANDLE_BYTES);
    return 1;
}

static void fill_open(prepared_open *open, krb5_enctype enctype, const uint8_t *handle,
                      uint32_t usage, const krb5_data *message)
{
    if (!copy_data(message, &open->message))
        return;
    open->present = 1;
    open->enctype = enctype;
    open->usage = usage;
    memcpy(open->handle, handle, MPC_HANDLE_BYTES);
}

/* Only of GCM keys: the others' ciphertext cannot be begun without the plaintext. */
static void add_seal(prepared_job *job, krb5_enctype enctype, const uint8_t *handle,
                     uint32_t usage, size_t size)
{
    prepared_seal *seal = &job->seals[job->seal_count];

    if (!gcm_enctype(enctype) || size > UINT32_MAX || job->seal_count == MPC_MAX_SEALS)
        return;
    memcpy(seal->handle, handle, MPC_HANDLE_BYTES);
    seal->enctype = enctype;
    seal->usage = usage;
    seal->max_plaintext = (uint32_t)size;
    job->seal_count++;
}

void request_note_client(request *r, const uint8_t *handle)
{
    memcpy(r->noted, handle, MPC_HANDLE_BYTES);
    r->has_noted = 1;
}

/* Sets r->client from the reply key; if that is local (a service's own key, or one that OTP or
 * PKINIT has put in place of the client's), from the client's entry. Returns whether the reply key
 * is remote. */
static int find_client(request *r, const krb5_keyblock *reply_key)
{
    const int remote = handle_of(reply_key, r->client);

    if (!remote && r->has_noted)
        memcpy(r->client, r->noted, MPC_HANDLE_BYTES);
    r->has_client = remote || r->has_noted;
    return remote;
}

/* The pre-authentication may have been verified before the hint: under another key of the client's
 * than that of the reply. Its grant pays for the rest. */
static enum mpc_operation login_operation(const request *r)
{
    return r->grant != 0 ? MPC_SEAL_GRANTED : MPC_LOGIN;
}

void request_take_as_hint(request *r, const krb5_remote_key_as_hint *hint)
{
    prepared_job *job = &r->prepared;
    uint8_t ticket_key[MPC_HANDLE_BYTES];
    int remote;

    prepared_clear(job);
    r->is_as = 1;
    remote = find_client(r, hint->client_key);
    r->tag_may_be_late = remote && hint->finish_with_reply; /* the reply comes by us */
    if (!r->has_client)
        return; /* nothing may be sealed for a client whom the servers do not know */
    if (remote && r->grant == 0 && hint->preauth_cipher != NULL)
        fill_open(&job->open, hint->client_key->enctype, r->client, USAGE_PREAUTH,
                  hint->preauth_cipher);
    if (handle_of(hint->ticket_key, ticket_key))
        add_seal(job, hint->ticket_key->enctype, ticket_key, USAGE_TICKET, hint->ticket_size);
    if (remote && hint->reply_size > 0)
        add_seal(job, hint->client_key->enctype, r->client, USAGE_AS_REPLY, hint->reply_size);
    if (remote && hint->as_req != NULL && copy_data(hint->as_req, &job->mac.data)) {
        job->mac.present = 1;
        job->mac.enctype = hint->client_key->enctype;
        memcpy(job->mac.handle, r->client, MPC_HANDLE_BYTES);
    }
    if (job->seal_count > 0 || job->mac.present)
        job->operation = login_operation(r);
    else if (job->open.present)
        job->operation = MPC_OPEN_PREAUTH;
}

void request_take_tgs_hint(request *r, const krb5_remote_key_tgs_hint *hint)
{
    prepared_job *job = &r->prepared;
    uint8_t tgt_key[MPC_HANDLE_BYTES], ticket_key[MPC_HANDLE_BYTES];

    prepared_clear(job);
    if (hint->ticket_cipher == NULL || !handle_of(hint->tgt_key, tgt_key))
        return;
    request_remember_parent(r, hint->tgt_key->enctype, tgt_key, hint->ticket_cipher);
    fill_open(&job->open, hint->tgt_key->enctype, tgt_key, USAGE_TICKET, hint->ticket_cipher);
    if (!job->open.present)
        return;
    if (handle_of(hint->ticket_key, ticket_key))
        add_seal(job, hint->ticket_key->enctype, ticket_key, USAGE_TICKET, hint->ticket_size);
    job->operation = job->seal_count > 0 ? MPC_REISSUE_TICKET : MPC_OPEN_TICKET;
}

void request_remember_parent(request *r, krb5_enctype enctype, const uint8_t *handle,
                             const krb5_data *message)
{
    if (!r->parent.present)
        fill_open(&r->parent, enctype, handle, USAGE_TICKET, message);
}

int request_send_prepared(request *r, mpc_client *client)
{
    prepared_job *p = &r->prepared;
    mpc_job job = {0};
    mpc_open open;
    mpc_seal seals[MPC_MAX_SEALS];
    mpc_make_mac mac;
    size_t i;

    if (p->operation == 0 || p->flight != NULL)
        return p->flight != NULL;
    job.operation = p->operation;
    if (p->operation != MPC_OPEN_TICKET && p->operation != MPC_REISSUE_TICKET)
        job.client = r->client;
    if (p->operation == MPC_SEAL_GRANTED)
        job.grant = r->grant;
    if (p->open.present) {
        open = (mpc_open){p->open.handle, p->open.usage,
                          {(uint8_t *)p->open.message.data, p->open.message.length},
                          p->open.enctype};
        job.open = &open;
    }
    for (i = 0; i < p->seal_count; i++)
        seals[i] = (mpc_seal){p->seals[i].handle, p->seals[i].usage, p->seals[i].max_plaintext,
                              p->seals[i].enctype, {NULL, 0}};
    job.seals = seals;
    job.seal_count = p->seal_count;
    if (p->mac.present) {
        mac = (mpc_make_mac){p->mac.handle, USAGE_AS_REQ_CHECKSUM,
                             {(uint8_t *)p->mac.data.data, p->mac.data.length},
                             p->mac.enctype};
        job.make_mac = &mac;
    }
    p->flight = flight_start(client, &job);
    return p->flight != NULL;
}

int request_has_open(const request *r, const uint8_t *handle, uint32_t usage,
                     const krb5_data *message)
{
    const prepared_open *open = &r->prepared.open;

    return r->prepared.operation != 0 && open->present && open->usage == usage &&
           same_handle(open->handle, handle) && same_data(&open->message, message);
}

int request_take_seal(request *r, const uint8_t *handle, uint32_t usage, size_t plain_length,
                      uint32_t *index)
{
    prepared_job *job = &r->prepared;
    uint32_t i;

    for (i = 0; job->operation != 0 && i < job->seal_count; i++) {
        prepared_seal *seal = &job->seals[i];

        if (seal->used || seal->usage != usage || !same_handle(seal->handle, handle) ||
            seal->max_plaintext < plain_length)
            continue;
        seal->used = 1;
        *index = i;
        return 1;
    }
    return 0;
}

int request_has_mac(const request *r, const uint8_t *handle, const krb5_data *data)
{
    const prepared_mac *mac = &r->prepared.mac;

    return r->prepared.operation != 0 && mac->present && same_handle(mac->handle, handle) &&
           same_data(&mac->data, data);
}
