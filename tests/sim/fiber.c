/* SPDX-License-Identifier: MIT */
#include "fiber.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef __x86_64__
#include <ucontext.h>
#endif

enum { STACK = 2 * 1024 * 1024, GUARD = 4096 }; /* the reader has a batch of claims on its stack */

struct fiber {
#ifdef __x86_64__
  void *sp;
#else
  ucontext_t context;
#endif
  int errno_kept;
  char *stack; /* GUARD bytes that nobody may touch, then STACK; NULL: the program's own */
  fiber_fn *run;
  void *arg;
  void *fake_stack;   /* of AddressSanitizer */
  const void *bottom; /* of the program's own stack, as AddressSanitizer tells it */
  size_t size;
  struct fiber *next_free;
};

static struct fiber own, *current = &own, *came_from, *free_fibers;

static void arrive(void) {
#ifdef __SANITIZE_ADDRESS__
  const void *bottom;
  size_t size;
  __sanitizer_finish_switch_fiber(current->fake_stack, &bottom, &size);
  if (came_from == &own) {
    own.bottom = bottom;
    own.size = size;
  }
#endif
  errno = current->errno_kept;
}

__attribute__((noreturn, used)) static void begin(void) {
  arrive();
  current->run(current->arg);
  abort(); /* the contract: it switches away for good */
}

#ifdef __x86_64__
/* Keeps what the calling convention keeps: rbx, rbp, r12 to r15 and the stack pointer. */
void fiber_swap(void **save, void *load);
__asm__(".text\n"
        ".type fiber_swap, @function\n"
        "fiber_swap:\n"
        "  endbr64\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size fiber_swap, .-fiber_swap\n");

static void prepare(struct fiber *fiber) {
  uintptr_t *sp = (uintptr_t *)(void *)(fiber->stack + GUARD + STACK);
  *--sp = 0;                /* begin() has no caller; the stack is aligned as after a call */
  *--sp = (uintptr_t)begin; /* where `ret` goes */
  for (int i = 0; i < 6; i++)
    *--sp = 0;
  fiber->sp = sp;
}
static void swap(struct fiber *from, struct fiber *to) { fiber_swap(&from->sp, to->sp); }
#else
static void prepare(struct fiber *fiber) {
  if (getcontext(&fiber->context) != 0)
    abort();
  fiber->context.uc_stack.ss_sp = fiber->stack + GUARD;
  fiber->context.uc_stack.ss_size = STACK;
  fiber->context.uc_link = NULL;
  makecontext(&fiber->context, begin, 0);
}
static void swap(struct fiber *from, struct fiber *to) {
  if (swapcontext(&from->context, &to->context) != 0)
    abort();
}
#endif

static struct fiber *make(void) {
  struct fiber *fiber = calloc(1, sizeof *fiber);
  char *stack =
      mmap(NULL, GUARD + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (!fiber || stack == MAP_FAILED || mprotect(stack, GUARD, PROT_NONE) != 0) {
    perror("no memory for a fiber");
    exit(1);
  }
  fiber->stack = stack;
  return fiber;
}

struct fiber *fiber_new(fiber_fn *run, void *arg) {
  struct fiber *fiber = free_fibers;
  if (fiber)
    free_fibers = fiber->next_free;
  else
    fiber = make();
  *fiber = (struct fiber){.stack = fiber->stack, .run = run, .arg = arg};
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(fiber->stack + GUARD, STACK); /* whoever had it may have left in the middle of a call */
#endif
  prepare(fiber);
  return fiber;
}

void fiber_switch(struct fiber *to) {
  struct fiber *from = current;
  to = to ? to : &own;
  if (to == from)
    return;
  from->errno_kept = errno;
  came_from = from;
  current = to;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&from->fake_stack, to->stack ? to->stack + GUARD : to->bottom,
                                 to->stack ? STACK : to->size);
#endif
  swap(from, to);
  arrive();
}

void fiber_drop(struct fiber *fiber) {
  if (fiber == current)
    abort();
  fiber->next_free = free_fibers;
  free_fibers = fiber;
}
