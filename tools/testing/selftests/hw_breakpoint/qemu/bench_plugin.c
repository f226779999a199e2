// SPDX-License-Identifier: GPL-2.0
/*
 * Counts the writes of debug registers in each round of the bench program.
 *
 * A plugin of QEMU TCG, version 9.1 or newer. For each round, which is enclosed in
 * mark_begin() and mark_end() of ../bench.c, it writes a line with the number of writes
 * by all CPUs to the file that the argument out= names.
 *
 * The functions of QEMU are declared here, because distributions do not package the
 * header.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT	__attribute__((__visibility__("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

/* qemu_plugin_register_vcpu_insn_exec_cb(): the callback reads no register. */
#define CB_NO_REGS	0

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
		void (*cb)(plugin_id id, struct qemu_plugin_tb *tb));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest, size_t len);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
		void (*cb)(unsigned int cpu, void *data), int flags, void *data);

EXPORT int qemu_plugin_version = 3;

static const uint8_t mark_begin[] = { 0x0f, 0x1f, 0x80, 'b', 'n', 'c', 'h' };
static const uint8_t mark_end[] = { 0x0f, 0x1f, 0x80, 'h', 'c', 'n', 'b' };

static uint64_t writes, writes_at_begin;
static FILE *out;

static void on_write(unsigned int cpu, void *data)
{
	writes++;
}

static void on_begin(unsigned int cpu, void *data)
{
	writes_at_begin = writes;
}

static void on_end(unsigned int cpu, void *data)
{
	fprintf(out, "%llu\n", (unsigned long long)(writes - writes_at_begin));
}

/* mov %reg, %dbN, with or without a REX prefix */
static int writes_debug_register(const uint8_t *code, size_t size)
{
	if (size && (code[0] & 0xf0) == 0x40) {
		code++;
		size--;
	}
	return size >= 2 && code[0] == 0x0f && code[1] == 0x23;
}

static void on_translation(plugin_id id, struct qemu_plugin_tb *tb)
{
	uint8_t code[16];

	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		size_t size = qemu_plugin_insn_data(insn, code, sizeof(code));
		void (*cb)(unsigned int cpu, void *data) = NULL;

		if (writes_debug_register(code, size))
			cb = on_write;
		else if (size == sizeof(mark_begin) && !memcmp(code, mark_begin, size))
			cb = on_begin;
		else if (size == sizeof(mark_end) && !memcmp(code, mark_end, size))
			cb = on_end;
		if (cb)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, cb, CB_NO_REGS, NULL);
	}
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4))
		return -1;
	out = fopen(argv[0] + 4, "w");
	if (!out)
		return -1;
	setvbuf(out, NULL, _IOLBF, 0);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
