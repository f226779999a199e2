// SPDX-License-Identifier: GPL-2.0
/*
 * Watch events of hwbp in tracefs.  Event and instance of a run have its process ID in
 * their names, so that other runs find what it has left if it was killed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracefs.h"
#include "util.h"

int tracefs_put(const char *path, const char *text, int flags)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags), err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

char *tracefs_event(pid_t pid)
{
	return xasprintf(EVENT_NAME, pid);
}

char *tracefs_instance(pid_t pid)
{
	return xasprintf(TRACEFS "/instances/hwbp_%d", pid);
}

int tracefs_remove(pid_t pid)
{
	char *instance = tracefs_instance(pid), *text = xasprintf("-:" GROUP "/" EVENT_NAME, pid);
	char *carrier = xasprintf("-:" GROUP "/" CARRIER_NAME, pid);
	char *path = xasprintf(TRACEFS "/events/%s", carrier + strlen("-:"));
	int err;

	/* This disables the event and removes its triggers. */
	rmdir(instance);
	if (!access(path, F_OK))
		tracefs_put(EVENTS, carrier, O_APPEND);
	err = tracefs_put(EVENTS, text, O_APPEND);
	free(instance);
	free(carrier);
	free(path);
	free(text);
	return err;
}

/* ---- runs that were killed ---- */

static void visit_left(void (*func)(pid_t pid))
{
	FILE *file = fopen(EVENTS, "re");
	char *line = NULL;
	size_t size = 0;
	pid_t pid;

	while (file && getline(&line, &size, file) > 0) {
		if (sscanf(line, "w:" GROUP "/" EVENT_NAME " ", &pid) == 1 && kill(pid, 0) &&
		    errno == ESRCH)
			func(pid);
	}
	if (file)
		fclose(file);
	free(line);
}

static void note_left(pid_t pid)
{
	note("'hwbp trace' with pid %d was killed, and its watch event holds a register of each CPU: %s",
	     pid, "'hwbp trace --clean' removes it");
}

/* The run may be in another pid namespace: the kernel refuses to remove what is in use. */
static void remove_left(pid_t pid)
{
	int err = tracefs_remove(pid);

	if (err)
		note("cannot remove the event " GROUP "/" EVENT_NAME ": %s", pid, strerror(err));
	else
		printf("removed " GROUP "/" EVENT_NAME "\n", pid);
}

void tracefs_note_left(void)
{
	visit_left(note_left);
}

void tracefs_remove_left(void)
{
	visit_left(remove_left);
}
