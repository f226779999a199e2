// SPDX-License-Identifier: GPL-2.0
/*
 * hwbp - find the code that accesses a variable, with hardware breakpoints.
 *
 *   verb_*        the verbs: their options and their usage
 *   options       parse options
 *   loop          wait for records, signals and the end
 *   watch         one run of watch or stat
 *   target        launch a process, or attach to one
 *   symbols       the files that a process has mapped, as modules of libdwfl
 *   symbols_find  find symbols by name
 *   symbols_place describe addresses
 *   name          qualified names of C++ and Rust
 *   demangle      names that compilers have mangled
 *   debuginfo     find variables and types in the debug information
 *   type          types of variables
 *   tls           thread-local variables
 *   expression    evaluate the expression of a PLACE
 *   location      turn PLACE into an address and a length
 *   value         values of objects by their types
 *   change        what an access changed in an object
 *   readback      read values that the kernel does not record
 *   filter        the expression of --if; filter.y is its grammar, filter.l its words
 *   caps          features of the kernel's breakpoints
 *   events        open breakpoint events and parse their records
 *   rings         ring buffers of events, and sorting of records by time
 *   tasks         names of threads
 *   access        find the instruction that made an access
 *   unwind        callers of an access
 *   kallsyms      symbols of the kernel
 *   json          output for programs
 *   report        output of watch and stat
 *   term          colours and a summary on a terminal
 *   slots         parse the list of claims and registers in debugfs
 *   holders       explain that no register is available
 *   refusal       explain what the kernel has refused
 *   tracefs       watch events of trace, and those that killed runs have left
 *   trace_place   what trace watches, as commands for tracefs
 *   trace_report  output of trace
 *   btf           types of the kernel
 *   text          record changes of kernel text
 *   text_insn     what changed bytes mean
 *   text_names    symbols of kernel text that changes
 *   text_report   output of text
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <subcmd/exec-cmd.h>
#include <subcmd/pager.h>

#include "util.h"
#include "verb.h"

#define VERB(name)	extern const struct verb verb_##name;
#include "verbs.h"
#undef VERB

static const struct verb *const verbs[] = {
#define VERB(name)	&verb_##name,
#include "verbs.h"
#undef VERB
};

#define NR_VERBS	(sizeof(verbs) / sizeof(verbs[0]))

static void print_usage(FILE *out)
{
	size_t i;

	fputs("usage: hwbp VERB [OPTION...] [ARGUMENT...]\n"
	      "\n"
	      "Find the code that accesses a variable, with the hardware breakpoints of the\n"
	      "processor.\n"
	      "\n", out);
	for (i = 0; i < NR_VERBS; i++)
		fprintf(out, "  %-7s %s\n", verbs[i]->name, verbs[i]->summary);
	fputs("\nSee 'hwbp VERB --help' for the options of a verb.\n", out);
}

/* For completion in shells */
static void list_verbs(void)
{
	size_t i;

	for (i = 0; i < NR_VERBS; i++)
		puts(verbs[i]->name);
}

static const struct verb *find_verb(const char *name)
{
	size_t i;

	for (i = 0; i < NR_VERBS; i++) {
		if (!strcmp(verbs[i]->name, name))
			return verbs[i];
	}
	return NULL;
}

/* "watch, stat or trace" */
static char *verb_names(void)
{
	char *names = xstrdup("");
	size_t i;

	for (i = 0; i < NR_VERBS; i++) {
		const char *separator = !i ? "" : i + 1 < NR_VERBS ? ", " : " or ";
		char *longer = xasprintf("%s%s%s", names, separator, verbs[i]->name);

		free(names);
		names = longer;
	}
	return names;
}

/* Run the verb argv[0]. */
static int run_verb(int argc, const char **argv)
{
	const struct verb *verb = find_verb(argv[0]);

	if (!verb)
		die("unknown verb '%s': use %s (see hwbp --help)", argv[0], verb_names());
	return verb->run(argc, argv);
}

int main(int argc, const char **argv)
{
	exec_cmd_init("hwbp", "", "", "HWBP_EXEC_PATH");
	pager_init("HWBP_PAGER");
	if (!argv[1]) {
		print_usage(stderr);
		return EXIT_HWBP;
	}
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
		const char *help[] = { argv[2], "--help", NULL };

		if (argv[2])
			return run_verb(2, help);
		print_usage(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--list-verbs")) {
		list_verbs();
		return 0;
	}
	return run_verb(argc - 1, argv + 1);
}
