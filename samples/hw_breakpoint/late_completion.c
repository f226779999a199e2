// SPDX-License-Identifier: GPL-2.0
/*
 * late_completion.c - a request that another completion overwrites, for watch events to find
 *
 * A model of a fault of USB gadget drivers.  usb_ep_dequeue() is asynchronous: the controller
 * gives the request back later, with the number of bytes that it has transferred.  A driver
 * that uses the request for its next transfer before that, instead of waiting for the
 * completion as ffs_epfile_io() does, sometimes gets the length of the former transfer.
 *
 * The request is allocated all the time, and each writer has a valid pointer to it: KASAN
 * does not see the fault.  Writing N to the parameter "transfers" makes N transfers, one of
 * which the driver gives up.  See Documentation/trace/wprobetrace.rst.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/compiler.h>
#include <linux/completion.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

/**
 * struct request - a transfer of an endpoint
 * @length: bytes to be transferred
 * @actual: bytes that the controller has transferred
 * @status: 0 or an error
 * @done: the controller has given the request back
 */
struct request {
	u32			length;
	u32			actual;
	int			status;
	struct completion	done;
};

/**
 * struct endpoint - an endpoint of the device
 * @name: its name
 * @request: used for one transfer after the other
 * @work: the controller
 * @dequeued: the controller, when a request was dequeued
 */
struct endpoint {
	const char		*name;
	struct request		*request;
	struct work_struct	work;
	struct delayed_work	dequeued;
};

/* ---- The controller ---- */

static noinline void give_back(struct request *request, u32 actual, int status)
{
	request->status = status;
	WRITE_ONCE(request->actual, actual);
}

static void complete_transfer(struct work_struct *work)
{
	struct endpoint *ep = container_of(work, struct endpoint, work);

	give_back(ep->request, ep->request->length, 0);
	complete(&ep->request->done);
}

/* A part of the transfer had been made. */
static void retire_dequeued(struct work_struct *work)
{
	struct endpoint *ep = container_of(work, struct endpoint, dequeued.work);

	give_back(ep->request, 13, -ECONNRESET);
	/* No tail call: stack traces are to show this function. */
	barrier();
}

static void dequeue_request(struct endpoint *ep)
{
	schedule_delayed_work(&ep->dequeued, 2);
}

/* ---- The driver ---- */

static void queue_request(struct endpoint *ep, u32 length)
{
	ep->request->length = length;
	ep->request->status = -EINPROGRESS;
	WRITE_ONCE(ep->request->actual, 0);
	reinit_completion(&ep->request->done);
}

/* Returns the number of bytes, or an error. */
static noinline __noclone int transfer(struct endpoint *ep, unsigned int nr, bool give_up)
{
	queue_request(ep, 512);
	if (give_up) {
		/* The bug: the request is not the driver's before it is given back. */
		dequeue_request(ep);
		return -EINTR;
	}
	schedule_work(&ep->work);
	wait_for_completion(&ep->request->done);
	/* The driver looks at its result a moment later. */
	schedule_timeout_uninterruptible(6);
	return READ_ONCE(ep->request->actual);
}

static void make_transfers(struct endpoint *ep, unsigned int transfers)
{
	unsigned int i, bad = 0;
	int ret;

	for (i = 0; i < transfers; i++) {
		ret = transfer(ep, i, i == transfers / 2);
		if (ret >= 0 && ret != 512) {
			pr_info("%s: transfer %u has %d bytes, not 512\n", ep->name, i, ret);
			bad++;
		}
	}
	pr_info("%s: %u of %u transfers are wrong\n", ep->name, bad, transfers);
	cancel_work_sync(&ep->work);
	cancel_delayed_work_sync(&ep->dequeued);
}

/* ---- The parameter ---- */

static int run_transfers(const char *val, const struct kernel_param *kp)
{
	struct endpoint ep = { .name = "ep1in" };
	unsigned int transfers;

	if (kstrtouint(val, 0, &transfers) || transfers > 1000)
		return -EINVAL;
	ep.request = kzalloc(sizeof(*ep.request), GFP_KERNEL);
	if (!ep.request)
		return -ENOMEM;
	init_completion(&ep.request->done);
	INIT_WORK_ONSTACK(&ep.work, complete_transfer);
	INIT_DELAYED_WORK_ONSTACK(&ep.dequeued, retire_dequeued);
	make_transfers(&ep, transfers);
	destroy_delayed_work_on_stack(&ep.dequeued);
	destroy_work_on_stack(&ep.work);
	kfree(ep.request);
	return 0;
}

static const struct kernel_param_ops transfers_ops = {
	.set	= run_transfers,
};
module_param_cb(transfers, &transfers_ops, NULL, 0200);
MODULE_PARM_DESC(transfers, "make this many transfers, and give up one");

static int __init late_completion_init(void)
{
	return 0;
}
module_init(late_completion_init);

static void __exit late_completion_exit(void)
{
}
module_exit(late_completion_exit);

MODULE_DESCRIPTION("A request that another completion overwrites");
MODULE_LICENSE("GPL");
