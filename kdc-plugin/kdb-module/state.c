/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/state.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static module_state *states;

static void state_free(module_state *state)
{
    if (state == NULL)
        return;
    history_end(state);
    staging_clear(&state->staged);
    state_in_hand(state, NULL, NULL);
    krb5_free_keyblock_contents(state->context, &state->new_master);
    config_free(state->config);
    free(state);
}

/* Takes the state of `context` out of the list. */
static module_state *unlink_state(krb5_context context)
{
    module_state **place, *found = NULL;

    pthread_mutex_lock(&lock);
    for (place = &states; *place != NULL && found == NULL;) {
        if ((*place)->context == context) {
            found = *place;
            *place = found->next;
        } else {
            place = &(*place)->next;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

krb5_error_code state_open(krb5_context context, const char *section, int mode,
                           module_state **state_out)
{
    module_state *state = calloc(1, sizeof(*state));
    krb5_error_code ret;

    *state_out = NULL;
    if (state == NULL)
        return ENOMEM;
    ret = config_read(context, section, &state->config);
    if (ret) {
        free(state);
        return ret;
    }
    state->context = context;
    state->is_kdc = (mode & KRB5_KDB_SRV_TYPE_KDC) != 0;
    state->is_replica = (mode & KRB5_KDB_OPEN_REPLICA) != 0;
    state_free(unlink_state(context));
    pthread_mutex_lock(&lock);
    state->next = states;
    states = state;
    pthread_mutex_unlock(&lock);
    *state_out = state;
    return 0;
}

module_state *state_of(krb5_context context)
{
    module_state *state;

    pthread_mutex_lock(&lock);
    for (state = states; state != NULL && state->context != context;)
        state = state->next;
    pthread_mutex_unlock(&lock);
    return state;
}

int state_close(krb5_context context)
{
    module_state *state;
    int left = 0;

    state_free(unlink_state(context));
    pthread_mutex_lock(&lock);
    for (state = states; state != NULL; state = state->next)
        left++;
    pthread_mutex_unlock(&lock);
    return left;
}

void state_in_hand(module_state *state, krb5_const_principal principal,
                   const krb5_db_entry *entry)
{
    krb5_free_principal(state->context, state->current);
    state->current = NULL;
    state->only_read = 0;
    handle_list_free(&state->in_hand);
    /* Without memory nobody is in hand: then nothing is given, and no reference taken. */
    if (principal == NULL || krb5_copy_principal(state->context, principal, &state->current) != 0 ||
        entry == NULL)
        return;
    (void)handle_list_of(entry, NULL, &state->in_hand);
}

void state_entry_read(module_state *state, krb5_const_principal principal,
                      const krb5_db_entry *entry)
{
    if (state->is_kdc || is_master_principal(principal))
        return;
    state->only_read = 0;
    if (is_history_principal(principal)) {
        history_begin(state);
        return;
    }
    state_in_hand(state, principal, entry);
    state->only_read = 1;
}
