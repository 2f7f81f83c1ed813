/* SPDX-License-Identifier: MIT */
#include "core/task.h"

#include <stdlib.h>

void task_release(struct task *task) {
  struct task_batch *batch = task->batch;
  free(task->header_list);
  free(task->reply_to);
  task->header_list = NULL;
  task->reply_to = NULL;
  if (atomic_fetch_sub_explicit(&batch->open, 1, memory_order_acq_rel) == 1)
    batch->release(batch);
}
