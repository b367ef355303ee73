/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/errors.h"

#include <krb5/krb5.h>
#include <pthread.h>
#include <stdio.h>
#include <syslog.h>
#include <time.h>

#include "kdc-plugin/provider/process_client.h"
#include "kdc-plugin/provider/request.h"

/* Lines of one kind. */
typedef struct line_limit {
    time_t period_start;
    unsigned int lines, dropped;
} line_limit;

/* What anybody can bring about leaves room for what is out of order. */
enum { OF_CLIENTS, OF_SERVERS, KINDS };

/* Whether a line may be logged now; *suppressed gets the number of those of its kind that were not. */
static int may_log(int kind, unsigned int *suppressed)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static line_limit limits[KINDS];
    line_limit *limit = &limits[kind];
    struct timespec now;
    int allowed;

    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&lock);
    *suppressed = 0;
    if (limit->period_start == 0 || now.tv_sec - limit->period_start >= LOG_PERIOD) {
        *suppressed = limit->dropped;
        *limit = (line_limit){now.tv_sec, 0, 0};
    }
    allowed = limit->lines < LOG_LINES_PER_PERIOD;
    limit->lines += allowed;
    limit->dropped += !allowed;
    pthread_mutex_unlock(&lock);
    return allowed;
}

static int kind_of(enum mpc_verdict verdict, const request *r)
{
    const int of_client = verdict == MPC_REFUSED || verdict == MPC_REPLAY || verdict == MPC_UNPROVED;

    return of_client || (r != NULL && r->over_quota) ? OF_CLIENTS : OF_SERVERS;
}

static void log_line(krb5_context context, enum mpc_verdict verdict, const char *what,
                     const char *detail)
{
    const request *r = request_current(0);
    char line[1024];
    unsigned int suppressed;

    if (!may_log(kind_of(verdict, r), &suppressed))
        return;
    if (suppressed > 0) {
        snprintf(line, sizeof(line), "remote keys: %u more failures in the last %d seconds or more",
                 suppressed, LOG_PERIOD);
        process_client_log(context, LOG_ERR, line);
    }
    snprintf(line, sizeof(line), "remote keys: %s%s%s: %s", r != NULL ? r->label : "",
             r != NULL ? ": " : "", what, detail);
    process_client_log(context, LOG_ERR, line);
}

krb5_error_code verdict_error(krb5_context context, enum mpc_verdict verdict, const char *what,
                              const char *detail)
{
    krb5_error_code code;

    switch (verdict) {
    case MPC_BAD_TAG:
        code = KRB5KRB_AP_ERR_BAD_INTEGRITY;
        break;
    case MPC_CLOCK_SKEW:
        code = KRB5KRB_AP_ERR_SKEW;
        break;
    case MPC_REPLAY:
        /*
         * A request that this process has answered is answered again from its lookaside cache, and
         * one that another process of this KDC has asked the servers they judge again, once. So this
         * is one whose answer was lost more often, or on its way from a KDC of another name. Its
         * client repeats it and must not be told that it is an attacker; to an attacker one refusal
         * is as good as another.
         */
        code = KRB5KDC_ERR_SVC_UNAVAILABLE;
        detail = "the MPC servers have verified this request before, and its answer was lost or "
                 "went elsewhere; the next login starts afresh";
        break;
    case MPC_REFUSED:
        code = KRB5KDC_ERR_POLICY;
        break;
    default:
        code = KRB5KDC_ERR_SVC_UNAVAILABLE;
        break;
    }
    if (code == KRB5KDC_ERR_POLICY || code == KRB5KDC_ERR_SVC_UNAVAILABLE)
        log_line(context, verdict, what, detail);
    if (context != NULL)
        krb5_set_error_message(context, code, "%s: %s", what, detail);
    return code;
}

krb5_error_code not_in_table(krb5_context context, const char *what, int usage)
{
    char detail[120];

    snprintf(detail, sizeof(detail), "key usage %d is not in the servers' table of operations",
             usage);
    return verdict_error(context, MPC_REFUSED, what, detail);
}
