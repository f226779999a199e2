// SPDX-License-Identifier: GPL-2.0
/*
 * Triggers that make a watch event watch an address in the record of another event.
 *
 *   set_wprobe:EVENT:FIELD[+|-OFFS][:this_cpu][:COUNT] [if FILTER]
 *   set_wprobe:EVENT:(TYPE)FIELD->MEMBER[.MEMBER...][:this_cpu][:COUNT] [if FILTER]
 *   clear_wprobe:EVENT[:FIELD...][:this_cpu][:COUNT] [if FILTER]
 *
 * A trigger runs in any context in which its event is hit, NMI and #DB included.  It
 * only reads the field and calls trace_wprobe_set() or trace_wprobe_clear(), which
 * take no lock.
 *
 * COUNT is how many times the trigger may still repoint the watch event.  A run that
 * changes nothing, because the address cannot be watched or is not the one to clear,
 * does not decrement it.
 *
 * Locking: event_mutex.  A trigger holds a reference to the event that has it, and to
 * its watch event.  It softly enables the watch event before it can run, and disables
 * it when no CPU runs the trigger any more.
 */

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/btf.h>
#include <linux/cleanup.h>
#include <linux/ctype.h>
#include <linux/init.h>
#include <linux/rculist.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "trace.h"
#include "trace_btf.h"
#include "trace_wprobe.h"

/**
 * struct wprobe_trigger - private data of a trigger
 * @tw: the watch event
 * @file: file of @tw in the instance of the trigger
 * @call: the event that has the trigger
 * @field: field of @call that holds an address, or NULL
 * @expr: @field with offset or member, as in the command
 * @offset: added to the address
 * @clear: clear_wprobe, not set_wprobe
 * @this_cpu: repoint @tw only on the CPU that runs the trigger
 * @refused: number of addresses that could not be watched
 */
struct wprobe_trigger {
	struct trace_wprobe		*tw;
	struct trace_event_file		*file;
	struct trace_event_call		*call;
	struct ftrace_event_field	*field;
	char				*expr;
	long				offset;
	bool				clear;
	bool				this_cpu;
	atomic_long_t			refused;
};

/* ---- Running: any context, not preemptible ---- */

static unsigned long address_in(const struct wprobe_trigger *wt, void *rec)
{
	return *(unsigned long *)(rec + wt->field->offset);
}

/* Decrements the count, unless it is unlimited.  Returns false if it is 0. */
static bool take_count(struct event_trigger_data *data)
{
	unsigned long count = READ_ONCE(data->count);

	do {
		if (!count)
			return false;
		if (count == -1UL)
			return true;
	} while (!try_cmpxchg(&data->count, &count, count - 1));

	return true;
}

static void give_count_back(struct event_trigger_data *data)
{
	unsigned long count = READ_ONCE(data->count);

	do {
		if (count == -1UL)
			return;
	} while (!try_cmpxchg(&data->count, &count, count + 1));
}

/*
 * Checks the address before it decrements the count.  If a run that changes nothing
 * decremented the count from 1 to 0 and restored it afterwards, a run that would
 * change something, on another CPU or in an interrupt, could find 0 in between.
 */
static bool take_count_to_set(struct event_trigger_data *data, unsigned long addr)
{
	struct wprobe_trigger *wt = data->private_data;
	unsigned long count = READ_ONCE(data->count);

	/* Nothing to take: trace_wprobe_set() checks the address. */
	if (count == -1UL)
		return true;
	if (count && !trace_wprobe_can_watch(wt->tw, addr)) {
		atomic_long_inc(&wt->refused);
		return false;
	}
	return take_count(data);
}

static bool take_count_to_clear(struct event_trigger_data *data,
				const unsigned long *from)
{
	struct wprobe_trigger *wt = data->private_data;

	/* Nothing to take: trace_wprobe_clear() looks for itself. */
	if (READ_ONCE(data->count) == -1UL)
		return true;
	if (!trace_wprobe_can_clear(wt->tw, from, wt->this_cpu))
		return false;
	return take_count(data);
}

static void run_set(struct event_trigger_data *data, struct trace_buffer *buffer,
		    void *rec, struct ring_buffer_event *event)
{
	struct wprobe_trigger *wt = data->private_data;
	unsigned long base;

	if (!rec)
		return;
	/* NULL, as when the event traces an allocation that failed */
	base = address_in(wt, rec);
	if (!base || !take_count_to_set(data, base + wt->offset))
		return;
	if (trace_wprobe_set(wt->tw, base + wt->offset, wt->this_cpu)) {
		atomic_long_inc(&wt->refused);
		give_count_back(data);
	}
}

static void run_clear(struct event_trigger_data *data, struct trace_buffer *buffer,
		      void *rec, struct ring_buffer_event *event)
{
	struct wprobe_trigger *wt = data->private_data;
	unsigned long addr, *from = NULL;

	if (!rec)
		return;
	if (wt->field) {
		addr = address_in(wt, rec) + wt->offset;
		from = &addr;
	}
	if (!take_count_to_clear(data, from))
		return;
	if (trace_wprobe_clear(wt->tw, from, wt->this_cpu))
		give_count_back(data);
}

/* ---- Errors ---- */

#undef ERRORS
#define ERRORS								\
	C(NO_EVENT,	"Watch event is not specified"),		\
	C(BAD_EVENT,	"There is no such watch event"),		\
	C(NO_FIELD,	"Field is not specified"),			\
	C(BAD_FIELD,	"The event of this trigger has no such field"),	\
	C(FIELD_TYPE,	"The field does not hold an address"),		\
	C(BAD_OFFSET,	"Invalid offset"),				\
	C(ALIGN,	"The offset is not a multiple of the length that is watched"), \
	C(BAD_TYPE,	"There is no such structure or union, or no BTF"), \
	C(NO_ARROW,	"(TYPE)FIELD needs ->MEMBER"),			\
	C(BAD_MEMBER,	"There is no such member"),			\
	C(BITFIELD,	"A bit field has no address"),			\
	C(BAD_COUNT,	"Invalid count"),				\
	C(BAD_FILTER,	"Invalid filter"),				\
	C(SECOND,	"The event has such a trigger for this watch event already"), \
	C(NO_TRIGGER,	"The event has no such trigger"),		\
	C(NO_ENABLE,	"The watch event cannot be enabled"),

#undef C
#define C(a, b)		WP_ERR_##a
enum { ERRORS };
#undef C
#define C(a, b)		b
static const char *trigger_errors[] = { ERRORS };

/**
 * struct wprobe_parse - a trigger that is being parsed
 * @file: the event that gets the trigger
 * @name: "set_wprobe" or "clear_wprobe"
 * @command: the whole command, for the error log
 * @start: the end of @command, which the parser splits at colons
 * @base: offset of @start in @command
 * @remove: the command removes a trigger
 * @wt: result: the trigger
 * @count: result: text of COUNT, or NULL
 */
struct wprobe_parse {
	struct trace_event_file	*file;
	const char		*name;
	const char		*command;
	const char		*start;
	unsigned int		base;
	bool			remove;
	struct wprobe_trigger	*wt;
	const char		*count;
};

/* @at: the part of p->start that is invalid */
static int parse_error(const struct wprobe_parse *p, const char *at, int type, int err)
{
	tracing_log_err(p->file->tr, p->name, p->command, trigger_errors, type,
			p->base + (at - p->start));
	return err;
}

#define parse_error(p, at, type, err)	parse_error(p, at, WP_ERR_##type, err)

/* ---- Parsing: text between colons ---- */

static int parse_event(struct wprobe_parse *p, char *piece)
{
	char group[MAX_EVENT_NAME_LEN] = WPROBE_EVENT_SYSTEM;
	const char *name = piece, *slash = strchr(piece, '/');

	if (!*piece)
		return parse_error(p, piece, NO_EVENT, -EINVAL);
	if (slash) {
		if (slash - piece >= sizeof(group))
			return parse_error(p, piece, BAD_EVENT, -EINVAL);
		strscpy(group, piece, slash - piece + 1);
		name = slash + 1;
	}

	p->wt->file = find_event_file(p->file->tr, group, name);
	if (p->wt->file)
		p->wt->tw = trace_wprobe_from_call(p->wt->file->event_call);
	if (!p->wt->tw)
		return parse_error(p, piece, BAD_EVENT, -ENOENT);

	return 0;
}

static int find_field(struct wprobe_parse *p, char *name)
{
	struct ftrace_event_field *field;

	if (!*name)
		return parse_error(p, name, NO_FIELD, -EINVAL);
	field = trace_find_event_field(p->file->event_call, name);
	if (!field)
		return parse_error(p, name, BAD_FIELD, -ENOENT);
	if (field->size != sizeof(long) || is_string_field(field))
		return parse_error(p, name, FIELD_TYPE, -EINVAL);

	p->wt->field = field;
	return 0;
}

/* FIELD[+|-OFFS] */
static int parse_field(struct wprobe_parse *p, char *piece)
{
	char *sign = strpbrk(piece, "+-");

	if (sign && kstrtol(sign, 0, &p->wt->offset))
		return parse_error(p, sign, BAD_OFFSET, -EINVAL);
	if (sign && !IS_ALIGNED(p->wt->offset, trace_wprobe_len(p->wt->tw)))
		return parse_error(p, sign, ALIGN, -EINVAL);

	if (sign)
		*sign = '\0';
	return find_field(p, piece);
}

#ifdef CONFIG_PROBE_EVENTS_BTF_ARGS
/* @path: MEMBER[.MEMBER...], whose offsets are added to the offset of the trigger */
static int add_members(struct wprobe_parse *p, struct btf *btf,
		       const struct btf_type *type, char *path)
{
	const struct btf_member *member;
	const struct btf_type *owner;
	u32 bits, anonymous;
	char *name;

	while ((name = strsep(&path, "."))) {
		anonymous = 0;
		member = type ? btf_find_struct_member(btf, type, name, &anonymous,
						       &owner) : NULL;
		if (IS_ERR_OR_NULL(member))
			return parse_error(p, name, BAD_MEMBER, -ENOENT);
		bits = anonymous + __btf_member_bit_offset(owner, member);
		if (__btf_member_bitfield_size(owner, member) || bits % BITS_PER_BYTE)
			return parse_error(p, name, BITFIELD, -EINVAL);
		p->wt->offset += bits / BITS_PER_BYTE;
		type = btf_type_skip_modifiers(btf, member->type, NULL);
	}

	return 0;
}

static int parse_members(struct wprobe_parse *p, const char *type_name, char *path)
{
	struct btf *btf;
	s32 id;
	int err;

	id = bpf_find_btf_id(type_name, BTF_KIND_STRUCT, &btf);
	if (id < 0)
		id = bpf_find_btf_id(type_name, BTF_KIND_UNION, &btf);
	if (id < 0)
		return parse_error(p, type_name, BAD_TYPE, -ENOENT);

	err = add_members(p, btf, btf_type_by_id(btf, id), path);
	btf_put(btf);
	return err;
}
#else
static int parse_members(struct wprobe_parse *p, const char *type_name, char *path)
{
	return parse_error(p, type_name, BAD_TYPE, -EOPNOTSUPP);
}
#endif

/* (TYPE)FIELD->MEMBER[.MEMBER...] */
static int parse_typed_field(struct wprobe_parse *p, char *piece)
{
	char *type = piece + 1, *close = strchr(piece, ')'), *arrow;
	int err;

	if (!close)
		return parse_error(p, type, BAD_TYPE, -EINVAL);
	arrow = strstr(close, "->");
	if (!arrow)
		return parse_error(p, close + 1, NO_ARROW, -EINVAL);
	*close = '\0';
	*arrow = '\0';

	err = find_field(p, close + 1);
	if (!err)
		err = parse_members(p, type, arrow + 2);
	if (!err && !IS_ALIGNED(p->wt->offset, trace_wprobe_len(p->wt->tw)))
		err = parse_error(p, arrow + 2, ALIGN, -EINVAL);
	return err;
}

/* @text: starts with a piece */
static bool is_this_cpu(const char *text)
{
	size_t len = str_has_prefix(text, "this_cpu");

	return len && (!text[len] || text[len] == ':');
}

static bool is_count(const char *piece)
{
	return isdigit(*piece) || !strcmp(piece, "unlimited") ||
	       str_has_prefix(piece, "count=");
}

/* The field, which may be absent in clear_wprobe and when a trigger is removed */
static int parse_expr(struct wprobe_parse *p, char **pieces)
{
	char *piece = *pieces;
	bool absent = !piece || is_count(piece) || is_this_cpu(piece);

	if (absent && (p->wt->clear || p->remove))
		return 0;
	if (absent)
		return parse_error(p, piece ?: p->start + strlen(p->start), NO_FIELD,
				   -EINVAL);

	piece = strsep(pieces, ":");
	p->wt->expr = kstrdup(piece, GFP_KERNEL);
	if (!p->wt->expr)
		return -ENOMEM;
	return *piece == '(' ? parse_typed_field(p, piece) : parse_field(p, piece);
}

/* [:this_cpu][:COUNT], also as print_trigger() prints them */
static int parse_options(struct wprobe_parse *p, char *pieces)
{
	char *piece;

	while ((piece = strsep(&pieces, ":"))) {
		if (!strcmp(piece, "this_cpu") && !p->wt->this_cpu && !p->count)
			p->wt->this_cpu = true;
		else if (is_count(piece) && !p->count)
			p->count = piece;
		else
			return parse_error(p, piece, BAD_COUNT, -EINVAL);
	}

	return 0;
}

static int parse_param(struct wprobe_parse *p, char *pieces)
{
	int err;

	err = parse_event(p, strsep(&pieces, ":"));
	if (!err)
		err = parse_expr(p, &pieces);
	return err ?: parse_options(p, pieces);
}

static int parse_count(struct wprobe_parse *p, struct event_trigger_data *data)
{
	const char *count = p->count;

	if (!count || !strcmp(count, "unlimited"))
		return 0;
	count += str_has_prefix(count, "count=");
	if (kstrtoul(count, 0, &data->count) || (long)data->count < 0)
		return parse_error(p, p->count, BAD_COUNT, -EINVAL);

	return 0;
}

/* ---- Adding and removing: event_mutex ---- */

static void free_wt(struct wprobe_trigger *wt)
{
	kfree(wt->expr);
	kfree(wt);
}

static int init_trigger(struct event_trigger_data *data)
{
	return event_trigger_init(data);
}

static void release_events(struct wprobe_trigger *wt)
{
	trace_wprobe_release(wt->tw);
	trace_event_enable_disable(wt->file, 0, 1);
	trace_event_put_ref(wt->file->event_call);
	trace_event_put_ref(wt->call);
}

/*
 * The trigger is on no list, but CPUs may still be running it.  Wait for them before
 * the watch event is disabled and its breakpoints are freed.
 */
static void free_trigger(struct event_trigger_data *data)
{
	struct wprobe_trigger *wt = data->private_data;

	if (WARN_ON_ONCE(data->ref <= 0) || --data->ref)
		return;
	tracepoint_synchronize_unregister();
	release_events(wt);
	trigger_data_free(data);
	free_wt(wt);
}

/* A command without a field removes a trigger with any field. */
static bool is_meant(const struct wprobe_trigger *wt, const struct wprobe_trigger *other)
{
	return !wt->expr || (other->expr && !strcmp(wt->expr, other->expr));
}

/* An event has one set_wprobe for a watch event, and one clear_wprobe for each field. */
static bool excludes(const struct wprobe_trigger *wt, const struct wprobe_trigger *other)
{
	return !wt->clear || !strcmp(wt->expr ?: "", other->expr ?: "");
}

static struct event_trigger_data *
find_trigger(struct trace_event_file *file, const struct event_command *cmd_ops,
	     const struct wprobe_trigger *wt,
	     bool (*match)(const struct wprobe_trigger *wt,
			   const struct wprobe_trigger *other))
{
	struct event_trigger_data *data;

	lockdep_assert_held(&event_mutex);

	list_for_each_entry(data, &file->triggers, list) {
		const struct wprobe_trigger *other = data->private_data;

		if (data->cmd_ops == cmd_ops && other->tw == wt->tw && match(wt, other))
			return data;
	}

	return NULL;
}

static void unlink_trigger(struct event_trigger_data *data,
			   struct trace_event_file *file)
{
	list_del_rcu(&data->list);
	update_cond_flag(file);
}

static void disable_trigger(struct event_trigger_data *data,
			    struct trace_event_file *file)
{
	unlink_trigger(data, file);
	trace_event_trigger_enable_disable(file, 0);
}

static int reg_trigger(char *glob, struct event_trigger_data *data,
		       struct trace_event_file *file)
{
	int err;

	list_add_rcu(&data->list, &file->triggers);
	update_cond_flag(file);
	err = trace_event_trigger_enable_disable(file, 1);
	if (err)
		unlink_trigger(data, file);

	return err;
}

static void unreg_trigger(char *glob, struct event_trigger_data *test,
			  struct trace_event_file *file)
{
	struct event_trigger_data *data;

	data = find_trigger(file, test->cmd_ops, test->private_data, is_meant);
	if (data) {
		disable_trigger(data, file);
		free_trigger(data);
	}
}

static int remove_trigger(struct wprobe_parse *p, struct event_command *cmd_ops)
{
	struct event_trigger_data *data;

	data = find_trigger(p->file, cmd_ops, p->wt, is_meant);
	if (!data)
		return parse_error(p, p->start, NO_TRIGGER, -ENOENT);
	disable_trigger(data, p->file);
	free_trigger(data);
	return 0;
}

/* Softly enables the watch event, and holds its registers whatever disables the event. */
static int enable_softly(const struct wprobe_trigger *wt)
{
	int err;

	err = trace_event_enable_disable(wt->file, 1, 1);
	if (err)
		return err;
	err = trace_wprobe_hold(wt->tw, wt->file->tr);
	if (err)
		trace_event_enable_disable(wt->file, 0, 1);
	return err;
}

/*
 * Takes a reference to the watch event and softly enables it.  Also takes one to the
 * event that gets the trigger: otherwise its module could be unloaded, which frees
 * the event without calling free_trigger().
 */
static int hold_events(struct wprobe_parse *p)
{
	struct trace_event_file *file = p->wt->file;
	int err;

	if (!trace_event_try_get_ref(p->file->event_call))
		return -EBUSY;
	err = trace_event_try_get_ref(file->event_call) ? 0 : -EBUSY;
	if (!err) {
		err = enable_softly(p->wt);
		if (!err)
			return 0;
		trace_event_put_ref(file->event_call);
		parse_error(p, p->start, NO_ENABLE, err);
	}
	trace_event_put_ref(p->file->event_call);
	return err;
}

/* On success @data owns @p->wt. */
static int add_data(struct wprobe_parse *p, struct event_command *cmd_ops,
		    struct event_trigger_data *data, char *filter)
{
	const char *at = filter;
	int err;

	err = parse_count(p, data);
	if (err)
		return err;
	err = event_trigger_set_filter(cmd_ops, p->file, filter, data);
	if (err < 0)
		return parse_error(p, at, BAD_FILTER, err);
	err = hold_events(p);
	if (err)
		return err;

	data->private_data = p->wt;
	init_trigger(data);
	err = reg_trigger(NULL, data, p->file);
	if (err) {
		data->private_data = NULL;
		release_events(p->wt);
	}
	return err;
}

static int add_trigger(struct wprobe_parse *p, struct event_command *cmd_ops,
		       char *filter)
{
	struct event_trigger_data *data;
	int err;

	if (find_trigger(p->file, cmd_ops, p->wt, excludes))
		return parse_error(p, p->start, SECOND, -EEXIST);
	data = trigger_data_alloc(cmd_ops, NULL, NULL, NULL);
	if (!data)
		return -ENOMEM;
	err = add_data(p, cmd_ops, data, filter);
	if (err)
		trigger_data_free(data);

	return err;
}

/* @text: the command after its name and a colon */
static int parse_text(struct wprobe_parse *p, struct event_command *cmd_ops,
		      char *text)
{
	char *param, *filter;
	int err;

	event_trigger_separate_filter(text, &param, &filter, true);
	err = parse_param(p, param);
	if (err)
		return err;
	return p->remove ? remove_trigger(p, cmd_ops) : add_trigger(p, cmd_ops, filter);
}

static int parse_trigger(struct event_command *cmd_ops, struct trace_event_file *file,
			 char *glob, char *cmd, char *param_and_filter)
{
	struct wprobe_parse p = { .file = file, .name = cmd };
	int err;

	char *command __free(kfree) = kasprintf(GFP_KERNEL, "%s:%s", glob,
						param_and_filter ?: "");
	if (!command)
		return -ENOMEM;
	p.command = command;
	p.base = strlen(glob) + 1;
	p.remove = event_trigger_check_remove(glob);
	p.start = param_and_filter ?: "";
	if (!param_and_filter)
		return parse_error(&p, p.start, NO_EVENT, -EINVAL);

	p.wt = kzalloc(sizeof(*p.wt), GFP_KERNEL);
	if (!p.wt)
		return -ENOMEM;
	p.wt->clear = !strcmp(cmd, "clear_wprobe");
	p.wt->call = file->event_call;
	err = parse_text(&p, cmd_ops, param_and_filter);
	if (err || p.remove)
		free_wt(p.wt);

	return err;
}

/* ---- Printing ---- */

static void print_event(struct seq_file *m, const struct trace_event_call *call)
{
	if (strcmp(call->class->system, WPROBE_EVENT_SYSTEM))
		seq_printf(m, ":%s/", call->class->system);
	else
		seq_putc(m, ':');
	seq_puts(m, trace_event_name((struct trace_event_call *)call));
}

/* In brackets, unlike the parts that the user can write: tests remove it. */
static void print_state(struct seq_file *m, struct wprobe_trigger *wt)
{
	long refused = atomic_long_read(&wt->refused);

	if (refused)
		seq_printf(m, " [refused=%ld]", refused);
	if (!trace_wprobe_is_settled(wt->tw))
		seq_puts(m, " [unsettled]");
}

static int print_trigger(struct seq_file *m, struct event_trigger_data *data)
{
	struct wprobe_trigger *wt = data->private_data;

	seq_puts(m, data->cmd_ops->name);
	print_event(m, wt->file->event_call);
	if (wt->expr)
		seq_printf(m, ":%s", wt->expr);
	if (wt->this_cpu)
		seq_puts(m, ":this_cpu");
	if (data->count == -1UL)
		seq_puts(m, ":unlimited");
	else
		seq_printf(m, ":count=%ld", data->count);
	if (data->filter_str)
		seq_printf(m, " if %s", data->filter_str);
	print_state(m, wt);
	seq_putc(m, '\n');

	return 0;
}

/* ---- The commands ---- */

static struct event_command set_wprobe_cmd = {
	.name		= "set_wprobe",
	.trigger_type	= ETT_EVENT_WPROBE,
	.flags		= EVENT_CMD_FL_NEEDS_REC,
	.parse		= parse_trigger,
	.reg		= reg_trigger,
	.unreg		= unreg_trigger,
	.set_filter	= set_trigger_filter,
	.trigger	= run_set,
	.print		= print_trigger,
	.init		= init_trigger,
	.free		= free_trigger,
};

static struct event_command clear_wprobe_cmd = {
	.name		= "clear_wprobe",
	.trigger_type	= ETT_EVENT_WPROBE,
	.flags		= EVENT_CMD_FL_NEEDS_REC,
	.parse		= parse_trigger,
	.reg		= reg_trigger,
	.unreg		= unreg_trigger,
	.set_filter	= set_trigger_filter,
	.trigger	= run_clear,
	.print		= print_trigger,
	.init		= init_trigger,
	.free		= free_trigger,
};

static __init int register_wprobe_triggers(void)
{
	int err;

	err = register_event_command(&set_wprobe_cmd);
	if (!err)
		err = register_event_command(&clear_wprobe_cmd);

	return err;
}
fs_initcall(register_wprobe_triggers);
