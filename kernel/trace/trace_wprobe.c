// SPDX-License-Identifier: GPL-2.0
/*
 * Watch events: dynamic events for accesses to memory.
 *
 * A watch event has a kernel-wide hardware breakpoint, which is registered when the
 * first user (instance, trigger, perf or BPF) enables the event, and unregistered when
 * the last one disables it.  The breakpoint layer follows CPU hotplug and refuses the
 * registration if no register is available.
 *
 * An event may have several slots, each with a breakpoint: see trace_wprobe_slot.c.
 *
 * Locking: event_mutex, except for hits, which take no lock.
 */
#define pr_fmt(fmt) "trace_wprobe: " fmt

#include <linux/cleanup.h>
#include <linux/ctype.h>
#include <linux/hw_breakpoint.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/rculist.h>
#include <linux/security.h>
#include <linux/seq_buf.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "trace_dynevent.h"
#include "trace_probe.h"
#include "trace_probe_tmpl.h"
#include "trace_probe_kernel.h"
#include "trace_wprobe.h"

#define WPROBE_DEFAULT_LEN	4
#define WPROBE_MAX_LEN		8

/* Watched by events that should watch nothing: no code accesses it. */
static u64 wprobe_nowhere;

/* The same for events of type x: no code calls it. */
static noinline __used void wprobe_no_code(void)
{
	barrier();
}

static struct dyn_event_operations trace_wprobe_ops;

static struct trace_wprobe *to_wprobe(struct dyn_event *ev)
{
	return container_of(ev, struct trace_wprobe, devent);
}

static struct trace_wprobe *wprobe_of(struct trace_event_call *call)
{
	struct trace_probe *tp = trace_probe_primary_from_call(call);

	return WARN_ON_ONCE(!tp) ? NULL : container_of(tp, struct trace_wprobe, tp);
}

static unsigned long nowhere(u32 type)
{
	return type == HW_BREAKPOINT_X ? (unsigned long)wprobe_no_code :
					 (unsigned long)&wprobe_nowhere;
}

/* ---- Hits: #DB ---- */

static int
process_fetch_insn(struct fetch_insn *code, void *rec, void *edata, void *dest,
		   void *base)
{
	struct pt_regs *regs = rec;
	unsigned long val;
	int ret;

	while (code->op == FETCH_NOP_SYMBOL)
		code++;

	switch (code->op) {
	case FETCH_OP_REG:
		val = regs_get_register(regs, code->param);
		break;
	case FETCH_OP_STACK:
		val = regs_get_kernel_stack_nth(regs, code->param);
		break;
	case FETCH_OP_STACKP:
		val = kernel_stack_pointer(regs);
		break;
	case FETCH_OP_EDATA:
		val = *(unsigned long *)(edata + code->offset);
		break;
	default:
		ret = process_common_fetch_insn(code, &val);
		if (ret < 0)
			return ret;
	}

	return process_fetch_insn_bottom(code + 1, val, dest, base);
}
NOKPROBE_SYMBOL(process_fetch_insn)

/*
 * Fast path: a register or the watched address, stored as it is.  Returns false, and
 * stores nothing, for any other argument.
 */
static nokprobe_inline bool store_plain_arg(struct fetch_insn *code, struct pt_regs *regs,
					    struct wprobe_hit *hit, void *dest)
{
	unsigned long val;

	if (code[1].op != FETCH_OP_ST_RAW || code[2].op != FETCH_OP_END)
		return false;

	if (code->op == FETCH_OP_REG)
		val = regs_get_register(regs, code->param);
	else if (code->op == FETCH_OP_EDATA)
		val = *(unsigned long *)((void *)hit + code->offset);
	else
		return false;

	fetch_store_raw(val, &code[1], dest);
	return true;
}

static nokprobe_inline void
store_args(struct kprobe_trace_entry_head *entry, struct trace_wprobe *tw,
	   struct wprobe_hit *hit, struct pt_regs *regs)
{
	struct probe_arg *arg, *end = &tw->tp.args[tw->tp.nr_args];

	for (arg = tw->tp.args; arg < end; arg++) {
		void *dest = (void *)&entry[1] + arg->offset;

		if (!store_plain_arg(arg->code, regs, hit, dest))
			process_fetch_insn(arg->code, regs, hit, dest, entry);
	}
}

static nokprobe_inline int dynamic_size(struct trace_wprobe *tw, struct wprobe_hit *hit,
					struct pt_regs *regs)
{
	return unlikely(tw->has_dynamic) ? __get_data_size(&tw->tp, regs, hit) : 0;
}

static nokprobe_inline void
fill_entry(struct kprobe_trace_entry_head *entry, struct trace_wprobe *tw,
	   struct wprobe_hit *hit, struct pt_regs *regs, int dsize)
{
	entry->ip = instruction_pointer(regs);
	if (unlikely(tw->has_dynamic))
		store_trace_args(&entry[1], &tw->tp, regs, hit, sizeof(*entry), dsize);
	else
		store_args(entry, tw, hit, regs);
}

static nokprobe_inline void
trace_hit(struct trace_wprobe *tw, struct wprobe_hit *hit, struct pt_regs *regs,
	  struct trace_event_file *file)
{
	struct trace_event_buffer fbuffer __uninitialized;
	struct kprobe_trace_entry_head *entry;
	int dsize;

	if (trace_trigger_soft_disabled(file))
		return;

	dsize = dynamic_size(tw, hit, regs);
	entry = trace_event_buffer_reserve(&fbuffer, file,
					   sizeof(*entry) + tw->tp.size + dsize);
	if (!entry)
		return;
	fbuffer.regs = regs;
	fill_entry(entry, tw, hit, regs, dsize);
	trace_event_buffer_commit(&fbuffer);
}

/* Out of line, so that wprobe_hit() need not save registers for it. */
static noinline void profile_hit(struct trace_wprobe *tw, struct wprobe_hit *hit,
				 struct pt_regs *regs)
{
	struct trace_event_call *call = trace_probe_event_call(&tw->tp);
	struct kprobe_trace_entry_head *entry;
	struct hlist_head *head;
	int size, dsize, rctx;

	if (bpf_prog_array_valid(call) && !trace_call_bpf(call, regs))
		return;
	head = this_cpu_ptr(call->perf_events);
	if (hlist_empty(head))
		return;

	dsize = dynamic_size(tw, hit, regs);
	/* perf puts a u32 before the record and requires the sum to be aligned. */
	size = ALIGN(sizeof(*entry) + tw->tp.size + dsize + sizeof(u32), sizeof(u64));
	size -= sizeof(u32);
	entry = perf_trace_buf_alloc(size, NULL, &rctx);
	if (!entry)
		return;
	memset(&entry[1], 0, size - sizeof(*entry));
	fill_entry(entry, tw, hit, regs, dsize);
	perf_trace_buf_submit(entry, size, rctx, call->event.type, 1, regs, head, NULL);
}
NOKPROBE_SYMBOL(profile_hit);

static nokprobe_inline void handle_hit(struct trace_wprobe *tw, struct wprobe_hit *hit,
				       struct pt_regs *regs)
{
	unsigned int flags = trace_probe_load_flag(&tw->tp);
	struct event_file_link *link;

	/* Code that reads all memory, such as a dump, also reads wprobe_nowhere. */
	if (hit->addr == tw->nowhere)
		return;

	if (flags & TP_FLAG_TRACE) {
		trace_probe_for_each_link_rcu(link, &tw->tp)
			trace_hit(tw, hit, regs, link->file);
	}
	if (flags & TP_FLAG_PROFILE)
		profile_hit(tw, hit, regs);
}

/*
 * Take the address from @data: the event may have been repointed since the hit, so
 * that bp->attr.bp_addr is another one.
 */
static void wprobe_hit(struct perf_event *bp, struct perf_sample_data *data,
		       struct pt_regs *regs)
{
	struct wprobe_hit hit __uninitialized;

	hit.addr = data->addr;
	handle_hit(bp->overflow_handler_context, &hit, regs);
}
NOKPROBE_SYMBOL(wprobe_hit);

/* The same for an event that has values */
static void wprobe_hit_values(struct perf_event *bp, struct perf_sample_data *data,
			      struct pt_regs *regs)
{
	const struct hw_breakpoint_values *values = hw_breakpoint_values(data);
	struct wprobe_hit hit = { .addr = data->addr };

	if (!WARN_ON_ONCE(!values || values->len > sizeof(hit.value))) {
		const u8 *old = values->bytes + values->offset;

		/* Only x86 has watch events: the bytes are the low ones. */
		memcpy(&hit.old, old, values->len);
		memcpy(&hit.value, old + values->len, values->len);
		hit.known = values->flags;
	}
	handle_hit(bp->overflow_handler_context, &hit, regs);
}
NOKPROBE_SYMBOL(wprobe_hit_values);

/* ---- Printing ---- */

static enum print_line_t print_wprobe_event(struct trace_iterator *iter, int flags,
					    struct trace_event *event)
{
	struct trace_event_call *call = container_of(event, struct trace_event_call,
						     event);
	struct kprobe_trace_entry_head *field = (void *)iter->ent;
	struct trace_wprobe *tw = wprobe_of(call);
	struct trace_seq *s = &iter->seq;

	if (!tw)
		return trace_handle_return(s);

	trace_seq_printf(s, "%s: (", trace_probe_name(&tw->tp));
	if (seq_print_ip_sym(s, field->ip, flags | TRACE_ITER_SYM_OFFSET)) {
		trace_seq_putc(s, ')');
		trace_probe_print_args(s, tw->tp.args, tw->tp.nr_args,
				       (u8 *)&field[1], field);
		trace_seq_putc(s, '\n');
	}

	return trace_handle_return(s);
}

static int define_wprobe_fields(struct trace_event_call *event_call)
{
	struct trace_probe *tp = trace_probe_primary_from_call(event_call);
	struct kprobe_trace_entry_head field;
	int ret;

	if (WARN_ON_ONCE(!tp))
		return -ENOENT;
	DEFINE_FIELD(unsigned long, ip, FIELD_STRING_IP, 0);
	return traceprobe_define_arg_fields(event_call, sizeof(field), tp);
}

/* ---- Enabling: event_mutex held ---- */

static const char *const access_names[] = {
	[HW_BREAKPOINT_R]	= "r",
	[HW_BREAKPOINT_W]	= "w",
	[HW_BREAKPOINT_RW]	= "rw",
	[HW_BREAKPOINT_X]	= "x",
};

#define CHANGED	":changed"

/* ACCESS@PLACE[:LEN[:changed]], as in a definition */
static void print_place(char *buf, size_t size, const struct wprobe_place *place)
{
	struct seq_buf s;

	seq_buf_init(&s, buf, size);
	seq_buf_printf(&s, "%s@", access_names[place->type]);
	if (place->symbol && place->offset)
		seq_buf_printf(&s, "%s%+ld", place->symbol, place->offset);
	else if (place->symbol)
		seq_buf_puts(&s, place->symbol);
	else if (place->addr == nowhere(place->type))
		seq_buf_puts(&s, "-1");
	else
		seq_buf_printf(&s, "0x%lx", place->addr);
	if (place->type != HW_BREAKPOINT_X)
		seq_buf_printf(&s, ":%u", place->len);
	if (place->changed)
		seq_buf_puts(&s, CHANGED);
	seq_buf_str(&s);
}

#define PLACE_SIZE	(MAX_ARGSTR_LEN + MODULE_NAME_LEN + KSYM_NAME_LEN + sizeof(CHANGED))

static const char *wprobe_errors[] = {
	"No breakpoint register is free on all CPUs",
	"The breakpoint cannot be registered",
};

#define HOLDERS_SIZE	256

/* Appends the holders of the registers to a command, as a comment. */
static void print_holders(char *buf)
{
	int len = sprintf(buf, " # held by ");

	hw_breakpoint_holders(buf + len, HOLDERS_SIZE - len);
	if (!buf[len])
		*buf = '\0';
}

/* Logs to the error log of tracefs why an event cannot be enabled. */
static void log_enable_error(struct trace_wprobe *tw, struct trace_array *tr, int err)
{
	size_t size = PLACE_SIZE + 2 * MAX_EVENT_NAME_LEN + HOLDERS_SIZE;
	char *text __free(kfree) = kmalloc(size, GFP_KERNEL);
	int len;

	if (!text)
		return;
	len = scnprintf(text, size, "w:%s ", tw->name);
	print_place(text + len, size - len, &tw->place);
	if (err == -ENOSPC)
		print_holders(text + strlen(text));
	tracing_log_err(tr, "wprobe", text, wprobe_errors, err != -ENOSPC, len);
}

/*
 * Registers the breakpoints, unless a user of @tw has done that.  Do not conclude from
 * the other users that they exist: a user may not have called wprobe_register().
 */
static int arm_wprobe(struct trace_wprobe *tw, struct trace_array *tr)
{
	int err;

	if (tw->slots->events)
		return 0;
	err = trace_wprobe_arm(tw, tw->has_values ? wprobe_hit_values : wprobe_hit);
	if (err)
		log_enable_error(tw, tr, err);
	return err;
}

/* No handler of the breakpoints runs after the return. */
static void disarm_wprobe_if_unused(struct trace_wprobe *tw)
{
	if (!tw->holders && !trace_probe_is_enabled(&tw->tp))
		trace_wprobe_disarm(tw);
}

int trace_wprobe_hold(struct trace_wprobe *tw, struct trace_array *tr, bool set)
{
	int err;

	lockdep_assert_held(&event_mutex);

	err = arm_wprobe(tw, tr);
	if (err)
		return err;
	tw->holders++;
	/* The first address that a trigger sets is to find that @tw watches nothing. */
	if (set && !tw->setters++) {
		guard(preempt)();
		trace_wprobe_clear(tw, NULL, false);
	}
	return 0;
}

void trace_wprobe_release(struct trace_wprobe *tw, bool set)
{
	lockdep_assert_held(&event_mutex);

	if (WARN_ON_ONCE(!tw->holders))
		return;
	tw->holders--;
	tw->setters -= set;
	disarm_wprobe_if_unused(tw);
}

/* @file: NULL for perf */
static int enable_wprobe(struct trace_wprobe *tw, struct trace_event_file *file)
{
	int err;

	err = arm_wprobe(tw, file ? file->tr : NULL);
	if (err)
		return err;
	if (!file)
		trace_probe_set_flag(&tw->tp, TP_FLAG_PROFILE);
	else
		err = trace_probe_add_file(&tw->tp, file);
	if (err)
		disarm_wprobe_if_unused(tw);
	return err;
}

static int disable_wprobe(struct trace_wprobe *tw, struct trace_event_file *file)
{
	if (file && !trace_probe_get_file_link(&tw->tp, file))
		return -ENOENT;

	if (!file)
		trace_probe_clear_flag(&tw->tp, TP_FLAG_PROFILE);
	else if (trace_probe_has_single_file(&tw->tp))
		trace_probe_clear_flag(&tw->tp, TP_FLAG_TRACE);
	disarm_wprobe_if_unused(tw);
	/* Handlers may still walk the list of files: this waits for them. */
	if (file)
		trace_probe_remove_file(&tw->tp, file);

	return 0;
}

static int wprobe_register(struct trace_event_call *call, enum trace_reg type,
			   void *data)
{
	struct trace_wprobe *tw = wprobe_of(call);

	if (!tw)
		return -ENODEV;

	switch (type) {
	case TRACE_REG_REGISTER:
	case TRACE_REG_PERF_REGISTER:
		return enable_wprobe(tw, data);
	case TRACE_REG_UNREGISTER:
	case TRACE_REG_PERF_UNREGISTER:
		return disable_wprobe(tw, data);
	default:
		return 0;
	}
}

/*
 * Counting hits takes a register of every CPU and discloses when the kernel accesses
 * its memory.  So it requires privileges that counting a tracepoint does not.
 */
static int wprobe_perf_perm(struct trace_event_call *call, struct perf_event *event)
{
	return event->parent ? 0 : perf_allow_tracepoint();
}

static struct trace_event_functions wprobe_funcs = {
	.trace	= print_wprobe_event,
};

static struct trace_event_fields wprobe_fields_array[] = {
	{ .type = TRACE_FUNCTION_TYPE, .define_fields = define_wprobe_fields },
	{}
};

struct trace_wprobe *trace_wprobe_from_call(struct trace_event_call *call)
{
	return call->flags & TRACE_EVENT_FL_WPROBE ? wprobe_of(call) : NULL;
}

/* ---- Parsing a definition ---- */

static int parse_access(const char *arg, size_t len, struct wprobe_place *place)
{
	u32 type;

	place->type = HW_BREAKPOINT_RW;
	if (!len)
		return 0;
	for (type = 0; type < ARRAY_SIZE(access_names); type++) {
		const char *name = access_names[type];

		if (name && strlen(name) == len && !strncmp(arg, name, len)) {
			place->type = type;
			return 0;
		}
	}

	trace_probe_log_err(0, BAD_ACCESS_TYPE);
	return -EINVAL;
}

/*
 * Removes ":LEN:changed" but for the length from the end of @text. Without a length this is
 * a symbol "changed" of a module.
 */
static void parse_changed(char *text, struct wprobe_place *place)
{
	size_t len = strlen(text);
	char *colon;

	if (len < strlen(CHANGED) || strcmp(text + len - strlen(CHANGED), CHANGED))
		return;
	text[len - strlen(CHANGED)] = '\0';
	colon = strrchr(text, ':');
	place->changed = colon && isdigit(colon[1]);
	if (!place->changed)
		text[len - strlen(CHANGED)] = ':';
}

/* Removes ":LEN" from the end of @text, which is at @offset of the argument. */
static int parse_len(char *text, int offset, struct wprobe_place *place)
{
	char *colon = strrchr(text, ':');

	place->len = WPROBE_DEFAULT_LEN;
	if (place->type == HW_BREAKPOINT_X)
		place->len = sizeof(long);
	/* The text after the colon is a symbol: this is MODULE:SYMBOL without LEN. */
	if (!colon || (colon[1] && !isdigit(colon[1])))
		return 0;

	*colon = '\0';
	if (kstrtouint(colon + 1, 0, &place->len) ||
	    place->type == HW_BREAKPOINT_X || !is_power_of_2(place->len) ||
	    place->len > WPROBE_MAX_LEN) {
		trace_probe_log_err(offset + colon + 1 - text, BAD_ACCESS_LEN);
		return -EINVAL;
	}

	return 0;
}

static int count_symbol(void *nr, unsigned long addr)
{
	++*(unsigned int *)nr;
	return 0;
}

static bool is_ambiguous(const char *symbol)
{
	unsigned int nr = 0;

	if (!strchr(symbol, ':'))
		kallsyms_on_each_match_symbol(count_symbol, symbol, &nr);
	return nr > 1;
}

static unsigned long resolve(const struct wprobe_place *place)
{
	unsigned long addr = kallsyms_lookup_name(place->symbol);

	return addr ? addr + place->offset : 0;
}

/* Add the module, or another module's symbol of this name might be found later. */
static char *full_symbol(const char *symbol)
{
	char name[MODULE_NAME_LEN] = "";
	struct module *mod;

	scoped_guard(preempt) {
		mod = __module_address(kallsyms_lookup_name(symbol));
		if (mod && !strchr(symbol, ':'))
			strscpy(name, module_name(mod), sizeof(name));
	}

	return *name ? kasprintf(GFP_KERNEL, "%s:%s", name, symbol) :
		       kstrdup(symbol, GFP_KERNEL);
}

/* @text: the symbol, with or without an offset, at @offset of the argument */
static int parse_symbol(char *text, int offset, struct wprobe_place *place)
{
	if (traceprobe_split_symbol_offset(text, &place->offset)) {
		trace_probe_log_err(offset + strcspn(text, "+-"), BAD_PROBE_ADDR);
		return -EINVAL;
	}
	if (is_ambiguous(text)) {
		trace_probe_log_err(offset, NON_UNIQ_SYMBOL);
		return -EINVAL;
	}
	place->symbol = full_symbol(text);
	if (!place->symbol)
		return -ENOMEM;
	place->addr = resolve(place);
	if (!place->addr) {
		trace_probe_log_err(offset, BAD_PROBE_ADDR);
		return -ENOENT;
	}

	return 0;
}

/* @text: the place without access and length, at @offset of the argument */
static int parse_addr(char *text, int offset, struct wprobe_place *place)
{
	int err;

	if (!strcmp(text, "-1")) {
		place->addr = nowhere(place->type);
		return 0;
	}
	if (kstrtoul(text, 0, &place->addr)) {
		err = parse_symbol(text, offset, place);
		if (err)
			return err;
	} else if (!place->addr) {
		trace_probe_log_err(offset, BAD_ACCESS_ADDR);
		return -EINVAL;
	}
	if (!wprobe_is_aligned(place, place->addr)) {
		trace_probe_log_err(offset, BAD_ACCESS_ALIGN);
		return -EINVAL;
	}
	if (!trace_wprobe_can_watch(place, place->addr)) {
		trace_probe_log_err(offset, BAD_PROBE_ADDR);
		return -EINVAL;
	}

	return 0;
}

static int parse_place(const char *arg, struct wprobe_place *place)
{
	const char *at = strchr(arg, '@');
	int err, offset = at + 1 - arg;

	if (!at) {
		trace_probe_log_err(0, BAD_ACCESS_FMT);
		return -EINVAL;
	}
	char *text __free(kfree) = kstrdup(at + 1, GFP_KERNEL);
	if (!text)
		return -ENOMEM;

	parse_changed(text, place);
	err = parse_access(arg, at - arg, place);
	if (!err)
		err = parse_len(text, offset, place);
	if (err)
		return err;
	/* The hardware may lack this type or length. */
	if (!trace_wprobe_can_watch(place, nowhere(place->type))) {
		trace_probe_log_err(0, NO_ACCESS_TYPE);
		return -EOPNOTSUPP;
	}

	return parse_addr(text, offset, place);
}

/* Makes a name for an event whose definition has none. */
static void make_name(char *buf, const struct wprobe_place *place)
{
	if (place->symbol && place->offset)
		snprintf(buf, MAX_EVENT_NAME_LEN, "%s_%s%ld", place->symbol,
			 place->offset < 0 ? "minus_" : "", abs(place->offset));
	else if (place->symbol)
		strscpy(buf, place->symbol, MAX_EVENT_NAME_LEN);
	else if (place->addr == nowhere(place->type))
		strscpy(buf, "w_nowhere", MAX_EVENT_NAME_LEN);
	else
		snprintf(buf, MAX_EVENT_NAME_LEN, "w_0x%lx", place->addr);
	sanitize_event_name(buf);
}

/* ---- Creating and removing ---- */

static void free_wprobe(struct trace_wprobe *tw)
{
	trace_probe_cleanup(&tw->tp);
	kfree(tw->place.symbol);
	kfree(tw->name);
	kfree(tw);
}

/* On success the event owns @place->symbol. */
static struct trace_wprobe *alloc_wprobe(const char *group, const char *event,
					 const struct wprobe_place *place,
					 unsigned int nr_slots, int nargs)
{
	struct trace_event_call *call;
	struct trace_wprobe *tw;
	int err;

	tw = kzalloc(struct_size(tw, tp.args, nargs), GFP_KERNEL);
	if (!tw)
		return ERR_PTR(-ENOMEM);
	tw->name = kasprintf(GFP_KERNEL, "%s/%s", group, event);
	err = tw->name ? trace_probe_init(&tw->tp, event, group, false, nargs) : -ENOMEM;
	if (err) {
		kfree(tw->name);
		kfree(tw);
		return ERR_PTR(err);
	}

	tw->place = *place;
	tw->nowhere = nowhere(place->type);
	tw->nr_slots = nr_slots;
	trace_wprobe_init_slots(tw);
	dyn_event_init(&tw->devent, &trace_wprobe_ops);
	call = trace_probe_event_call(&tw->tp);
	call->flags = TRACE_EVENT_FL_WPROBE;
	call->event.funcs = &wprobe_funcs;
	call->class->fields_array = wprobe_fields_array;
	call->class->reg = wprobe_register;
	call->perf_perm = wprobe_perf_perm;
	return tw;
}

/* The execution of an instruction has no value. */
static bool needs_values(const struct wprobe_place *place, int argc, const char *argv[])
{
	bool needs = place->changed;
	int i;

	for (i = 0; i < argc; i++)
		needs |= strstr(argv[i], "$old") || strstr(argv[i], "$known");
	return needs && place->type != HW_BREAKPOINT_X;
}

static int parse_fetch_args(struct trace_wprobe *tw, int argc, const char *argv[])
{
	struct traceprobe_parse_context ctx = {
		.flags	= TPARG_FL_KERNEL | TPARG_FL_WPROBE,
	};
	int i, err = 0;

	tw->has_values = needs_values(&tw->place, argc, argv);
	if (tw->has_values)
		ctx.flags |= TPARG_FL_WPROBE_VALUES;
	for (i = 0; i < argc && !err; i++) {
		trace_probe_log_set_index(i + 2);
		ctx.offset = 0;
		err = traceprobe_parse_probe_arg(&tw->tp, i, argv[i], &ctx);
		/* Resolve arguments of the form @SYMBOL. */
		if (!err)
			err = traceprobe_update_arg(&tw->tp.args[i]);
		tw->has_dynamic |= tw->tp.args[i].dynamic;
	}
	traceprobe_finish_parse(&ctx);

	return err ?: traceprobe_set_print_fmt(&tw->tp, PROBE_PRINT_NORMAL);
}

/*
 * Finds the symbol again: a module is loaded at another address each time, and may lack the
 * symbol now.  Without the symbol, and in memory that a module is about to free, nothing is
 * watched.
 */
static void resolve_again(struct wprobe_place *place)
{
	unsigned long addr = place->symbol ? resolve(place) : place->addr;

	lockdep_assert_held(&event_mutex);

	if (!addr || !trace_wprobe_can_watch(place, addr))
		addr = nowhere(place->type);
	place->addr = addr;
}

static bool wprobe_matches(const char *system, const char *event, int argc,
			   const char **argv, struct dyn_event *ev)
{
	struct trace_wprobe *tw = to_wprobe(ev);
	char place[PLACE_SIZE];

	if (event[0] && strcmp(trace_probe_name(&tw->tp), event))
		return false;
	if (system && strcmp(trace_probe_group_name(&tw->tp), system))
		return false;
	if (!argc)
		return true;

	print_place(place, sizeof(place), &tw->place);
	return !strcmp(place, argv[0]) &&
	       trace_probe_match_command_args(&tw->tp, argc - 1, argv + 1);
}

/* Returns -EBUSY for the name of another watch event, -EEXIST for that of any other event. */
static int name_error(struct trace_wprobe *tw)
{
	const char *group = trace_probe_group_name(&tw->tp);
	const char *event = trace_probe_name(&tw->tp);
	struct dyn_event *ev;

	lockdep_assert_held(&event_mutex);

	for_each_dyn_event(ev) {
		if (ev->ops == &trace_wprobe_ops && wprobe_matches(group, event, 0, NULL, ev))
			return -EBUSY;
	}

	return -EEXIST;
}

static int register_wprobe(struct trace_wprobe *tw)
{
	int err;

	guard(mutex)(&event_mutex);
	/* A module may have been unloaded or loaded since the place was parsed. */
	resolve_again(&tw->place);
	err = trace_probe_register_event_call(&tw->tp);
	if (err == -EEXIST) {
		trace_probe_log_set_index(0);
		trace_probe_log_err(0, EVENT_EXIST);
		err = name_error(tw);
	}
	if (!err)
		dyn_event_add(&tw->devent, trace_probe_event_call(&tw->tp));

	return err;
}

/* On success the event owns @place->symbol. */
static int create_from(const char *group, const char *event, struct wprobe_place *place,
		       unsigned int nr_slots, int argc, const char *argv[])
{
	char *dentries __free(kfree) = NULL;
	struct trace_wprobe *tw;
	int err;

	if (argc > MAX_TRACE_ARGS) {
		trace_probe_log_set_index(MAX_TRACE_ARGS + 2);
		trace_probe_log_err(0, TOO_MANY_ARGS);
		return -E2BIG;
	}
	err = traceprobe_expand_dentry_args(argc, argv, &dentries);
	if (err)
		return err;
	tw = alloc_wprobe(group, event, place, nr_slots, argc);
	if (IS_ERR(tw))
		return PTR_ERR(tw);

	err = parse_fetch_args(tw, argc, argv);
	if (!err)
		err = register_wprobe(tw);
	if (err) {
		tw->place.symbol = NULL;
		free_wprobe(tw);
	}
	return err;
}

/* The number behind the w at the start of @text; returns the text behind the number. */
static const char *parse_slots(const char *text, unsigned int *nr)
{
	int len = 0;

	*nr = 1;
	/* More digits are an error below. */
	if (isdigit(text[1]) && sscanf(text + 1, "%4u%n", nr, &len) != 1)
		return NULL;
	text += 1 + len;
	if (*nr > WPROBE_MAX_SLOTS)
		trace_probe_log_err(1, TOO_MANY_SLOTS);
	else if (!*nr || (*text && *text != ':'))
		trace_probe_log_err(1, BAD_SLOTS);
	else
		return text;
	return NULL;
}

/* w[SLOTS][:[GRP/][EVENT]] [r|w|rw|x]@PLACE[:LEN] [ARGS] */
static int parse_definition(int argc, const char *argv[])
{
	const char *event = NULL, *group = WPROBE_EVENT_SYSTEM;
	struct wprobe_place place = { };
	char group_buf[MAX_EVENT_NAME_LEN];
	char name_buf[MAX_EVENT_NAME_LEN];
	unsigned int nr_slots;
	const char *name;
	int err;

	name = parse_slots(argv[0], &nr_slots);
	if (!name)
		return -EINVAL;
	if (argc < 2) {
		trace_probe_log_err(0, NO_ARG_BODY);
		return -EINVAL;
	}
	if (*name == ':') {
		event = name + 1;
		err = traceprobe_parse_event_name(&event, &group, group_buf,
						  event - argv[0]);
		if (err)
			return err;
	}
	trace_probe_log_set_index(1);

	err = parse_place(argv[1], &place);
	if (!err && !event) {
		make_name(name_buf, &place);
		event = name_buf;
	}
	if (!err)
		err = create_from(group, event, &place, nr_slots, argc - 2, argv + 2);
	if (err)
		kfree(place.symbol);
	return err;
}

static int parse_command(int argc, const char *argv[])
{
	int err;

	if (argv[0][0] != 'w')
		return -ECANCELED;
	/* Arguments can read any memory, like those of kprobe events. */
	err = security_locked_down(LOCKDOWN_KPROBES);
	if (err)
		return err;

	trace_probe_log_init("wprobe", argc, argv);
	err = parse_definition(argc, argv);
	trace_probe_log_clear();
	return err;
}

static int create_wprobe(const char *raw_command)
{
	return trace_probe_create(raw_command, parse_command);
}

static int release_wprobe(struct dyn_event *ev)
{
	struct trace_wprobe *tw = to_wprobe(ev);

	/* A user has enabled the event, or holds a reference to it. */
	if (trace_probe_is_enabled(&tw->tp) ||
	    trace_event_dyn_busy(trace_probe_event_call(&tw->tp)) ||
	    trace_probe_unregister_event_call(&tw->tp))
		return -EBUSY;

	dyn_event_remove(ev);
	trace_probe_unlink(&tw->tp);
	free_wprobe(tw);
	return 0;
}

static bool wprobe_is_busy(struct dyn_event *ev)
{
	return trace_probe_is_enabled(&to_wprobe(ev)->tp);
}

static int show_wprobe(struct seq_file *m, struct dyn_event *ev)
{
	struct trace_wprobe *tw = to_wprobe(ev);
	char place[PLACE_SIZE];
	int i;

	print_place(place, sizeof(place), &tw->place);
	seq_putc(m, 'w');
	if (tw->nr_slots > 1)
		seq_printf(m, "%u", tw->nr_slots);
	seq_printf(m, ":%s/%s %s", trace_probe_group_name(&tw->tp),
		   trace_probe_name(&tw->tp), place);
	for (i = 0; i < tw->tp.nr_args; i++)
		seq_printf(m, " %s=%s", tw->tp.args[i].name, tw->tp.args[i].comm);
	seq_putc(m, '\n');

	return 0;
}

/* ---- Loading and unloading of modules ---- */

#ifdef CONFIG_MODULES
static bool is_in_module(const struct wprobe_place *place, const struct module *mod)
{
	size_t len = strlen(mod->name);

	return place->symbol && !strncmp(place->symbol, mod->name, len) &&
	       place->symbol[len] == ':';
}

/* An address does not follow a module that is loaded: it names no symbol. */
static bool resolve_for_module(struct wprobe_place *place, const struct module *mod,
			       unsigned long state)
{
	unsigned long old = place->addr;

	if (state == MODULE_STATE_COMING && is_in_module(place, mod))
		resolve_again(place);
	else if (trace_wprobe_is_freed(old, mod, state))
		place->addr = nowhere(place->type);
	return place->addr != old;
}

static void follow_or_leave(struct trace_wprobe *tw, const struct module *mod,
			    unsigned long state)
{
	bool moved = resolve_for_module(&tw->place, mod, state);

	if (!tw->slots->events)
		return;
	if (state != MODULE_STATE_COMING)
		trace_wprobe_leave_module(tw, mod, state);
	/* CPUs that come online later must not watch the former place either. */
	if (moved && !tw->setters)
		trace_wprobe_follow(tw);
}

static int wprobe_module_callback(struct notifier_block *nb, unsigned long state,
				  void *data)
{
	struct dyn_event *ev;

	guard(mutex)(&event_mutex);
	for_each_dyn_event(ev) {
		if (ev->ops == &trace_wprobe_ops)
			follow_or_leave(to_wprobe(ev), data, state);
	}

	return NOTIFY_DONE;
}

static struct notifier_block wprobe_module_nb = {
	.notifier_call	= wprobe_module_callback,
};

static int __init watch_modules(void)
{
	return register_module_notifier(&wprobe_module_nb);
}
#else
static int __init watch_modules(void)
{
	return 0;
}
#endif

static struct dyn_event_operations trace_wprobe_ops = {
	.create		= create_wprobe,
	.show		= show_wprobe,
	.is_busy	= wprobe_is_busy,
	.free		= release_wprobe,
	.match		= wprobe_matches,
};

static int __init trace_wprobe_init(void)
{
	int err;

	err = watch_modules();
	if (!err)
		err = dyn_event_register(&trace_wprobe_ops);
	if (err)
		pr_warn("cannot register watch events: %pe\n", ERR_PTR(err));

	return err;
}
core_initcall(trace_wprobe_init);
