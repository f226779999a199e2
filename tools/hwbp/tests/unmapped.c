// SPDX-License-Identifier: GPL-2.0
/*
 * unmapped: the program unmaps its code and that of its libraries, prints "ready", and
 * executes itself again when it has read a byte from standard input. Until then its maps
 * are like those of a process in exec(): no file is mapped to be executed. Then it prints
 * "mapped", and increments a variable for each further byte, up to the end of the line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_AREAS	32

/* What remains: a copy of the code below, and what it uses */
struct rest {
	char code[512];
	/* Areas to unmap, up to the first one of length 0 */
	struct {
		unsigned long start;
		unsigned long len;
	} area[MAX_AREAS + 1];
	/* Filled by the code */
	const char *argv[3];
	char byte;
};

long again;

/* void wait_and_exec(struct rest *rest): executed from the copy */
asm(".pushsection .rodata\n"
	"wait_and_exec:\n"
	"	mov	%rdi, %rbx\n"
	"	lea	512(%rbx), %r12\n"	/* area */
	"1:	mov	(%r12), %rdi\n"
	"	mov	8(%r12), %rsi\n"
	"	test	%rsi, %rsi\n"
	"	je	2f\n"
	"	mov	$11, %eax\n"		/* munmap() */
	"	syscall\n"
	"	add	$16, %r12\n"
	"	jmp	1b\n"
	"2:	mov	$1, %eax\n"		/* write() */
	"	mov	$1, %edi\n"
	"	lea	3f(%rip), %rsi\n"
	"	mov	$6, %edx\n"
	"	syscall\n"
	"	xor	%eax, %eax\n"		/* read() */
	"	xor	%edi, %edi\n"
	"	lea	1064(%rbx), %rsi\n"	/* byte */
	"	mov	$1, %edx\n"
	"	syscall\n"
	"	lea	4f(%rip), %rdi\n"
	"	lea	1040(%rbx), %rsi\n"	/* argv */
	"	mov	%rdi, (%rsi)\n"
	"	mov	%rdi, 8(%rsi)\n"
	"	xor	%edx, %edx\n"
	"	mov	$59, %eax\n"		/* execve() */
	"	syscall\n"
	"	hlt\n"
	"3:	.ascii	\"ready\\n\"\n"
	"4:	.asciz	\"/proc/self/exe\"\n"
	"wait_and_exec_end:\n"
	".popsection\n");

extern const char wait_and_exec[], wait_and_exec_end[];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Finds the files that are mapped to be executed. */
static void find_areas(struct rest *rest)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512], perm[5];
	int nr = 0;

	if (!f)
		die("/proc/self/maps");
	while (nr < MAX_AREAS && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %4s", &start, &end, perm) != 3 || perm[2] != 'x' ||
		    !strchr(line, '/'))
			continue;
		rest->area[nr].start = start;
		rest->area[nr++].len = end - start;
	}
	fclose(f);
}

static void unmap_and_exec(void)
{
	struct rest *rest = mmap(NULL, sizeof(*rest), PROT_READ | PROT_WRITE | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*run)(struct rest *rest) = (void *)rest;

	_Static_assert(sizeof(rest->code) == 512 && sizeof(rest->area) == 528,
		       "the code knows these offsets");
	if (rest == MAP_FAILED)
		die("mmap");
	memcpy(rest->code, wait_and_exec, wait_and_exec_end - wait_and_exec);
	find_areas(rest);
	run(rest);
}

int main(int argc, char **argv)
{
	int c;

	(void)argv;
	if (argc < 2)
		unmap_and_exec();
	puts("mapped");
	fflush(stdout);
	do {
		c = getchar();
		again++;
	} while (c != '\n' && c != EOF);
	return 0;
}
