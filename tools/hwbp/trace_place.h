/* SPDX-License-Identifier: GPL-2.0 */
/* What hwbp trace watches, as commands for tracefs. */
#ifndef HWBP_TRACE_PLACE_H
#define HWBP_TRACE_PLACE_H

#include <sys/types.h>

#include "location.h"

/**
 * struct trace_place - what to watch
 * @spec: ACCESS@PLACE[:LEN], of an object ACCESS[+OFFSET][:LEN], of a window
 *	  [ACCESS@]EXPRESSION[:LEN]
 * @object: --object: EVENT:FIELD[ if FILTER], or NULL
 * @clear_on: --clear-on: EVENT[:FIELD][ if FILTER], or NULL
 * @window: --window: a function, or NULL
 * @timeout: --timeout, or NULL
 * @slots: --slots: number of objects that are watched at the same time, 0 for one
 * @event: definition of the watch event
 * @carrier: definition of an event at the entry of @window, or NULL
 * @set_file: "GROUP/NAME" of the event that has the trigger @set, NULL if there is none
 * @set: text of the trigger
 * @clear_file: "GROUP/NAME" of the event that has the trigger @clear, NULL if there is none
 * @clear: text of the trigger
 * @loc: length and type of the values
 */
struct trace_place {
	const char *spec;
	const char *object;
	const char *clear_on;
	const char *window;
	const char *timeout;
	unsigned int slots;
	char *event;
	char *carrier;
	char *set_file;
	char *set;
	char *clear_file;
	char *clear;
	struct location loc;
};

/* Exit with a one-line message if @spec does not fit to the options. */
void trace_place_check(const struct trace_place *place);

/*
 * Make the commands of the run @pid from what the user gave. Exits with a one-line message
 * if an event, a type or a member is not known.
 */
void trace_place_resolve(struct trace_place *place, pid_t pid);

#endif
