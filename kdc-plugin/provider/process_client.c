/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/process_client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mpc_options options; /* strings are ours; realm NULL before the first call */
static mpc_client *client;

static int same_text(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return strcmp(a, b) == 0;
}

static int same_realm(const mpc_options *other)
{
    int i, same = same_text(options.realm, other->realm);

    for (i = 0; i < MPC_MAX_TRIPLES * MPC_SERVERS; i++)
        same = same && same_text(options.servers[i], other->servers[i]);
    return same;
}

static const char *copy_text(const char *text, int *failed)
{
    char *copy = (text == NULL) ? NULL : strdup(text);

    if (text != NULL && copy == NULL)
        *failed = 1;
    return copy;
}

static void free_options(mpc_options *o)
{
    int i;

    free((char *)o->realm);
    for (i = 0; i < MPC_MAX_TRIPLES * MPC_SERVERS; i++)
        free((char *)o->servers[i]);
    free((char *)o->ca_file);
    free((char *)o->certificate_file);
    free((char *)o->key_file);
}

int process_client_configure(const mpc_options *wanted)
{
    mpc_options copy = *wanted;
    int i, failed = 0, ret = -1;

    copy.realm = copy_text(wanted->realm, &failed);
    for (i = 0; i < MPC_MAX_TRIPLES * MPC_SERVERS; i++)
        copy.servers[i] = copy_text(wanted->servers[i], &failed);
    copy.ca_file = copy_text(wanted->ca_file, &failed);
    copy.certificate_file = copy_text(wanted->certificate_file, &failed);
    copy.key_file = copy_text(wanted->key_file, &failed);
    pthread_mutex_lock(&lock);
    if (!failed && (options.realm == NULL || same_realm(wanted))) {
        mpc_options old = options;

        options = copy;
        copy = old;
        ret = 0;
    }
    pthread_mutex_unlock(&lock);
    free_options(&copy);
    return ret;
}

/* A client of another process is left alone: its threads are not here. */
static void forget_inherited(void)
{
    client = NULL;
    pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* Asking for the process id instead would be a system call for each operation. */
static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, forget_inherited);
}

mpc_client *process_client_get(char **error)
{
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    mpc_client *result;

    *error = NULL;
    pthread_once(&watched, watch_forks);
    pthread_mutex_lock(&lock);
    if (options.realm != NULL && client == NULL)
        client = mpc_client_start(&options, error);
    result = client;
    pthread_mutex_unlock(&lock);
    return result;
}

void process_client_stop(void)
{
    mpc_client *mine = NULL;
    mpc_options old;

    pthread_mutex_lock(&lock);
    mine = client;
    client = NULL;
    old = options;
    memset(&options, 0, sizeof(options));
    pthread_mutex_unlock(&lock);
    if (mine != NULL)
        mpc_client_stop(mine); /* logs through its own copy of the log function */
    free_options(&old);
}

void process_client_log(int priority, const char *text)
{
    mpc_log_function log;

    pthread_mutex_lock(&lock);
    log = options.log;
    pthread_mutex_unlock(&lock);
    if (log != NULL)
        log(priority, text);
}
