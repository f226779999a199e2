// SPDX-License-Identifier: GPL-2.0
/*
 * unmapped: the program unmaps its code, prints "ready", and maps the code again when it
 * has read a byte from standard input. Until then its maps are like those of a process
 * that executes a program which the kernel has not mapped yet. Then it prints "mapped",
 * and increments a variable for each further byte, up to the end of the line.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

long again;

/*
 * void blink(void *start, size_t len, int fd, off_t offset): the part that unmaps the
 * code, waits and maps it again. It is executed from a copy, and uses no other memory
 * than its own and the stack.
 */
asm(".pushsection .rodata\n"
    "blink:\n"
    "	push	%rbx\n"
    "	push	%r12\n"
    "	push	%r13\n"
    "	push	%r14\n"
    "	mov	%rdi, %rbx\n"
    "	mov	%rsi, %r12\n"
    "	mov	%rdx, %r13\n"
    "	mov	%rcx, %r14\n"
    "	mov	$11, %eax\n"		/* munmap */
    "	syscall\n"
    "	mov	$1, %eax\n"		/* write */
    "	mov	$1, %edi\n"
    "	lea	1f(%rip), %rsi\n"
    "	mov	$6, %edx\n"
    "	syscall\n"
    "	push	$0\n"
    "	xor	%eax, %eax\n"		/* read */
    "	xor	%edi, %edi\n"
    "	mov	%rsp, %rsi\n"
    "	mov	$1, %edx\n"
    "	syscall\n"
    "	pop	%rax\n"
    "	mov	$9, %eax\n"		/* mmap: PROT_READ | PROT_EXEC */
    "	mov	%rbx, %rdi\n"
    "	mov	%r12, %rsi\n"
    "	mov	$5, %edx\n"
    "	mov	$0x12, %r10d\n"	/* MAP_PRIVATE | MAP_FIXED */
    "	mov	%r13, %r8\n"
    "	mov	%r14, %r9\n"
    "	syscall\n"
    "	pop	%r14\n"
    "	pop	%r13\n"
    "	pop	%r12\n"
    "	pop	%rbx\n"
    "	ret\n"
    "1:	.ascii	\"ready\\n\"\n"
    "blink_end:\n"
    ".popsection\n");

extern const char blink[], blink_end[];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* The mapping of this program that can be executed */
static void find_code(unsigned long *start, unsigned long *end, unsigned long *offset)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], perm[5];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %4s %lx", start, end, perm, offset) == 4 &&
		    perm[2] == 'x' && strchr(line, '/')) {
			fclose(f);
			return;
		}
	}
	die("/proc/self/maps");
}

int main(void)
{
	int prot = PROT_READ | PROT_WRITE | PROT_EXEC, fd = open("/proc/self/exe", O_RDONLY);
	unsigned long start, end, offset;
	void *copy = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*run)(unsigned long start, size_t len, int fd, unsigned long offset) = copy;
	int c;

	if (fd < 0 || copy == MAP_FAILED)
		die("unmapped");
	memcpy(copy, blink, blink_end - blink);
	find_code(&start, &end, &offset);
	run(start, end - start, fd, offset);
	puts("mapped");
	fflush(stdout);
	do {
		c = getchar();
		again++;
	} while (c != '\n' && c != EOF);
	return 0;
}
