// SPDX-License-Identifier: GPL-2.0
/*
 * Windows: watches that begin when a function is entered and end when this call returns.
 *
 * A trigger of an fprobe event at the entry of a function runs before the first instruction
 * of the function.  It replaces the return address, like the exit handler of an fprobe: a
 * node of the rethook belongs to the call, whatever calls the function makes, and on
 * whatever CPU it returns.  The node has the watch, and not its address: when the watch has
 * been cleared or evicted, or its time is up, the return ends nothing.
 */
#include <linux/container_of.h>
#include <linux/kprobes.h>
#include <linux/rethook.h>
#include <linux/trace_recursion.h>

#include "trace_probe.h"
#include "trace_wprobe.h"

/* Calls that have not returned, for each trigger */
#define MAX_CALLS	256

struct window {
	struct rethook_node	node;
	struct wprobe_watch	watch;
};

/*
 * Events of functions that are called here are missed, as in the handler of an fprobe: their
 * windows would end here, too.
 */
static void close_window(struct rethook_node *node, void *data, unsigned long ret_ip,
			 struct pt_regs *regs)
{
	struct window *window = container_of(node, struct window, node);
	struct wprobe_windows *windows = data;
	int bit;

	bit = ftrace_test_recursion_trylock(ret_ip, ret_ip);
	if (trace_wprobe_leave(windows->tw, &window->watch))
		atomic_long_inc(windows->cleared);
	if (bit >= 0)
		ftrace_test_recursion_unlock(bit);
}
NOKPROBE_SYMBOL(close_window);

int trace_wprobe_init_windows(struct wprobe_windows *windows, struct trace_event_call *call)
{
	struct rethook *rethook;

	if (!trace_fprobe_is_entry(call))
		return -EOPNOTSUPP;
	rethook = rethook_alloc(windows, close_window, sizeof(struct window), MAX_CALLS);
	if (IS_ERR(rethook))
		return PTR_ERR(rethook);
	windows->rethook = rethook;
	return 0;
}

enum wprobe_result trace_wprobe_open(struct wprobe_windows *windows, unsigned long addr,
				     const struct wprobe_how *how)
{
	struct pt_regs *regs = trace_fprobe_entry_regs();
	struct wprobe_how open = *how;
	enum wprobe_result result;
	struct rethook_node *node;
	struct window *window;

	node = rethook_try_get(windows->rethook);
	if (!node)
		return WPROBE_MISSED;
	window = container_of(node, struct window, node);
	window->watch.slot = NULL;
	open.watch = &window->watch;
	result = trace_wprobe_set(windows->tw, addr, &open);
	if (result <= WPROBE_EVICTED || (result == WPROBE_SAME && window->watch.slot))
		rethook_hook(node, regs, true);
	else
		rethook_recycle(node);
	return result;
}

void trace_wprobe_stop_windows(struct wprobe_windows *windows)
{
	if (windows->rethook)
		rethook_stop(windows->rethook);
}

void trace_wprobe_free_windows(struct wprobe_windows *windows)
{
	if (windows->rethook)
		rethook_free(windows->rethook);
}
