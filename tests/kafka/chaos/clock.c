/* Preloaded into a process, moves its calendar clock: SIGUSR1 an hour forward, SIGUSR2 an hour back.

   Also for who waits until a time of that clock, as on a machine whose clock is set: set back, it waits an hour longer.
   Monotonic time stays as it is. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>

#define HOUR_S 3600
#define SLICE_NS 20000000L   /* how soon a waiting thread sees the step */
#define CALENDAR_S 1000000000L /* no machine is up for so long: a smaller time is a monotonic one */

static volatile time_t moved_s;
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_cnd_timedwait)(cnd_t *, mtx_t *, const struct timespec *);

static void move(int number) { moved_s += number == SIGUSR1 ? HOUR_S : -HOUR_S; }

__attribute__((constructor)) static void begin(void)
{
    real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    real_timedwait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2"); /* the default is an older one */
    if (!real_timedwait)
        real_timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    real_cnd_timedwait = dlsym(RTLD_NEXT, "cnd_timedwait");
    signal(SIGUSR1, move);
    signal(SIGUSR2, move);
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    if (!real_gettime)
        begin();
    int result = real_gettime(clock, at);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        at->tv_sec += moved_s;
    return result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *at, int base) { return clock_gettime(CLOCK_REALTIME, at) == 0 ? base : 0; }

/* How long to sleep at most before looking at the clock again, as a time of the machine's own; 0 where it is over. */
static int next_slice(const struct timespec *until, struct timespec *slice)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    long long left_ns = (until->tv_sec - now.tv_sec) * 1000000000LL + (until->tv_nsec - now.tv_nsec);
    if (left_ns <= 0)
        return 0;
    real_gettime(CLOCK_REALTIME, slice);
    slice->tv_nsec += left_ns < SLICE_NS ? left_ns : SLICE_NS;
    slice->tv_sec += slice->tv_nsec / 1000000000L;
    slice->tv_nsec %= 1000000000L;
    return 1;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    if (until->tv_sec < CALENDAR_S)
        return real_timedwait(condition, mutex, until);
    struct timespec slice;
    int result = ETIMEDOUT;
    while (result == ETIMEDOUT && next_slice(until, &slice))
        result = real_timedwait(condition, mutex, &slice);
    return result;
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until)
{
    struct timespec slice;
    int result = thrd_timedout;
    while (result == thrd_timedout && next_slice(until, &slice))
        result = real_cnd_timedwait(condition, mutex, &slice);
    return result;
}
