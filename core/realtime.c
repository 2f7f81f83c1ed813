/* SPDX-License-Identifier: MIT */
#include "core/realtime.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

#include "core/base/log.h"

enum { PRIORITY = 1 };

void realtime_bind(const char *cpus) {
  cpu_set_t set;
  if (!cpus)
    return;
  if (!cpus_parse(cpus, &set))
    errno = EINVAL; /* the configuration is checked when it is loaded */
  else if (sched_setaffinity(0, sizeof set, &set) == 0)
    return;
  log_warn("DUEBOX-CPUS",
           "engine.cpus: cannot run on the processors %s: %s; it runs on any. Name some that this machine has and its "
           "service may use (AllowedCPUs=, SystemCallFilter=)",
           cpus, strerror(errno));
}

void realtime_thread(bool wanted, const char *name) {
  const struct sched_param param = {.sched_priority = PRIORITY};
  int failed = wanted ? pthread_setschedparam(pthread_self(), SCHED_RR, &param) : 0;
  if (failed)
    log_warn("DUEBOX-REALTIME",
             "engine.realtime: thread=%s runs without real-time priority: %s; allow it with LimitRTPRIO=%d, "
             "RestrictRealtime=no and SystemCallFilter=sched_setscheduler in the service, or with ulimit -r %d",
             name, strerror(failed), PRIORITY, PRIORITY);
}

void realtime_punctual(void) { (void)prctl(PR_SET_TIMERSLACK, 1UL); /* ns */ }
