/* SPDX-License-Identifier: GPL-2.0 */
/* The watch event of a run of hwbp trace, and the instance in which it is enabled. */
#ifndef HWBP_TRACEFS_H
#define HWBP_TRACEFS_H

#include <sys/types.h>

#define TRACEFS		"/sys/kernel/tracing"
#define EVENTS		TRACEFS "/dynamic_events"
#define GROUP		"hwbp"

/* Names of the watch event of a run, and of the event at the entry of its function */
#define EVENT_NAME	"trace_%d"
#define CARRIER_NAME	"window_%d"

/* Write @text to a file that is opened with O_WRONLY | @flags. Returns 0 or an errno. */
int tracefs_put(const char *path, const char *text, int flags);

/* Name of the event of the run @pid; directory of its instance; to be freed */
char *tracefs_event(pid_t pid);
char *tracefs_instance(pid_t pid);

/* Remove the instance and the events of the run @pid. Returns 0 or an errno. */
int tracefs_remove(pid_t pid);

/*
 * An event that a killed run has left holds a register of each CPU. Print a note for each
 * such event that can be seen; remove each, and print its name.
 */
void tracefs_note_left(void);
void tracefs_remove_left(void);

#endif
