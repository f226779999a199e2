// SPDX-License-Identifier: GPL-2.0
/*
 * Triggers that make a watch event watch an address in the record of another event.
 *
 *   set_wprobe:EVENT:PLACE[:this_cpu|:window][:evict][:timeout=TIME][:COUNT] [if FILTER]
 *   clear_wprobe:EVENT[:PLACE][:this_cpu][:COUNT] [if FILTER]
 *
 * PLACE is FIELD[+|-OFFS] or (TYPE[,FROM])FIELD->MEMBER[.MEMBER...][+|-OFFS], and what pointers
 * there lead to: PLACE->[+|-]OFFS, and in a TYPE also PLACE->MEMBER[.MEMBER...][+|-OFFS].
 *
 * A trigger runs in any context in which its event is hit, NMI and #DB included.  It
 * only reads the field and calls trace_wprobe_set() or trace_wprobe_clear(), which
 * take no lock.
 *
 * COUNT is how many times the trigger may still run, whatever a run does.
 *
 * Recording.  The watch event is enabled softly while it has triggers: it makes no records.
 * A run of set_wprobe that reads an address starts the recording, see start_recording().  It
 * ends with the last set_wprobe, unless the user has enabled the event.  A clear need not end
 * it: an event that watches nothing makes no records.
 *
 * Windows.  A trigger of an fprobe event at the entry of a function runs before the first
 * instruction of the function.  To end its watch when this call returns it replaces the return
 * address, like the exit handler of an fprobe: a node of the rethook belongs to the call,
 * whatever calls the function makes, and on whatever CPU it returns.  The node has the watch,
 * and not its address: when the watch has been cleared or evicted, or its time is up, the
 * return ends nothing.
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
#include <linux/kprobes.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/rculist.h>
#include <linux/rethook.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/trace_recursion.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>

#include "trace.h"
#include "trace_btf.h"
#include "trace_probe.h"
#include "trace_wprobe.h"

/* Pointers that an address is found by */
#define MAX_ARROWS	4

/* Calls with a window that have not returned, for each trigger */
#define MAX_CALLS	256

/* What runs of a trigger have done, as in its file */
enum wprobe_count {
	NR_SET,
	NR_CLEARED,
	NR_EVICTED,
	NR_EXPIRED,
	NR_MISSED,
	NR_COUNTS
};

static const char *const count_names[] = {
	[NR_SET]	= "set",
	[NR_CLEARED]	= "cleared",
	[NR_EVICTED]	= "evicted",
	[NR_EXPIRED]	= "expired",
	[NR_MISSED]	= "missed",
};

/**
 * struct wprobe_trigger - private data of a trigger
 * @tw: the watch event
 * @file: file of @tw in the instance of the trigger
 * @call: the event that has the trigger
 * @field: field of @call that holds an address, or NULL
 * @expr: @field with offset or member, as in the command
 * @arrows: offsets of pointers that lead from the address to another one
 * @nr_arrows: number of @arrows
 * @offset: added to the last address
 * @clear: clear_wprobe, not set_wprobe
 * @window: set_wprobe until the function returns
 * @indirect: @window, or there are @arrows
 * @how: how set_wprobe sets the address, and on which CPUs clear_wprobe clears it
 * @rethook: what is needed for each return; NULL without @window
 * @counts: see enum wprobe_count; wprobe_how::expired points to NR_EXPIRED
 * @link: in the list of set_wprobe triggers
 */
struct wprobe_trigger {
	struct trace_wprobe		*tw;
	struct trace_event_file		*file;
	struct trace_event_call		*call;
	struct ftrace_event_field	*field;
	char				*expr;
	unsigned long			arrows[MAX_ARROWS];
	unsigned int			nr_arrows;
	long				offset;
	bool				clear;
	bool				window;
	bool				indirect;
	struct wprobe_how		how;
	struct rethook			*rethook;
	atomic_long_t			counts[NR_COUNTS];
	struct list_head		link;
};

/* All set_wprobe triggers; protected by event_mutex */
static LIST_HEAD(set_triggers);

/* ---- Running: any context, not preemptible ---- */

static void count_run(struct wprobe_trigger *wt, enum wprobe_count nr)
{
	atomic_long_inc(&wt->counts[nr]);
}

static unsigned long address_in(const struct wprobe_trigger *wt, void *rec)
{
	return *(unsigned long *)(rec + wt->field->offset);
}

/*
 * Replaces @base, which is in the field, by what the pointers lead to.  Returns false if that is
 * NULL, or if a pointer cannot be read.
 */
static bool follow_arrows(const struct wprobe_trigger *wt, unsigned long *base)
{
	unsigned int i;

	for (i = 0; i < wt->nr_arrows && *base; i++) {
		if (get_kernel_nofault(*base, (unsigned long *)(*base + wt->arrows[i])))
			return false;
	}

	return *base;
}

/* Decrements the count, unless it is unlimited.  Returns false if it is 0. */
static __always_inline bool take_count(struct event_trigger_data *data)
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

/*
 * Makes @file record hits.  STARTED tells that a trigger has done that.  If the user enables
 * the event at the same time, that has cleared SOFT_DISABLED before it clears STARTED: either
 * this function finds SOFT_DISABLED clear, or STARTED is cleared after it.
 */
static void start_recording(struct trace_event_file *file)
{
	unsigned long flags = READ_ONCE(file->flags);

	do {
		if (likely(!(flags & EVENT_FILE_FL_SOFT_DISABLED)))
			return;
	} while (!try_cmpxchg(&file->flags, &flags, (flags & ~EVENT_FILE_FL_SOFT_DISABLED) |
						    EVENT_FILE_FL_STARTED));
}

struct window {
	struct rethook_node	node;
	struct wprobe_watch	watch;
};

static bool has_windows(const struct wprobe_trigger *wt)
{
	return IS_ENABLED(CONFIG_FPROBE_EVENTS) && wt->rethook;
}

/*
 * Events of functions that are called here are missed, as in the handler of an fprobe: their
 * windows would end here, too.
 */
static void close_window(struct rethook_node *node, void *data, unsigned long ret_ip,
			 struct pt_regs *regs)
{
	struct window *window = container_of(node, struct window, node);
	struct wprobe_trigger *wt = data;
	int bit;

	bit = ftrace_test_recursion_trylock(ret_ip, ret_ip);
	if (trace_wprobe_leave(wt->tw, &window->watch))
		count_run(wt, NR_CLEARED);
	if (bit >= 0)
		ftrace_test_recursion_unlock(bit);
}
NOKPROBE_SYMBOL(close_window);

/* Sets @addr until the function returns that was just entered. */
static noinline enum wprobe_result open_window(struct wprobe_trigger *wt, unsigned long addr)
{
	struct wprobe_how how = wt->how;
	enum wprobe_result result;
	struct rethook_node *node;
	struct window *window;

	node = rethook_try_get(wt->rethook);
	if (!node)
		return WPROBE_MISSED;
	window = container_of(node, struct window, node);
	window->watch.slot = NULL;
	how.watch = &window->watch;
	result = trace_wprobe_set(wt->tw, addr, &how);
	/* No slot: the address is missed, or was watched already, not by a call. */
	if (window->watch.slot)
		rethook_hook(node, trace_fprobe_entry_regs(), true);
	else
		rethook_recycle(node);
	return result;
}

/* Out of line, so that other triggers need not save registers for it. */
static noinline enum wprobe_result set_indirectly(struct wprobe_trigger *wt, unsigned long base)
{
	if (!follow_arrows(wt, &base))
		return WPROBE_MISSED;
	if (has_windows(wt))
		return open_window(wt, base + wt->offset);
	return trace_wprobe_set(wt->tw, base + wt->offset, &wt->how);
}

static void run_set(struct event_trigger_data *data, struct trace_buffer *buffer,
		    void *rec, struct ring_buffer_event *event)
{
	struct wprobe_trigger *wt = data->private_data;
	unsigned long base;

	if (!rec || !take_count(data))
		return;
	/* NULL, as when the event traces an allocation that failed */
	base = address_in(wt, rec);
	if (!base) {
		count_run(wt, NR_MISSED);
		return;
	}
	/* Before the address is watched, or first hits might be lost */
	start_recording(wt->file);
	switch (unlikely(wt->indirect) ? set_indirectly(wt, base) :
		trace_wprobe_set(wt->tw, base + wt->offset, &wt->how)) {
	case WPROBE_EVICTED:
		count_run(wt, NR_EVICTED);
		fallthrough;
	case WPROBE_SET:
		count_run(wt, NR_SET);
		break;
	case WPROBE_SAME:
		break;
	case WPROBE_MISSED:
		count_run(wt, NR_MISSED);
		break;
	}
}

static void run_clear(struct event_trigger_data *data, struct trace_buffer *buffer,
		      void *rec, struct ring_buffer_event *event)
{
	struct wprobe_trigger *wt = data->private_data;
	unsigned long addr, *from = NULL;
	unsigned int nr;

	if (!rec || !take_count(data))
		return;
	if (wt->field) {
		addr = address_in(wt, rec);
		if (!follow_arrows(wt, &addr))
			return;
		addr += wt->offset;
		from = &addr;
	}
	nr = trace_wprobe_clear(wt->tw, from, wt->how.this_cpu);
	if (nr)
		atomic_long_add(nr, &wt->counts[NR_CLEARED]);
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
	C(MANY_ARROWS,	"Too many pointers"),				\
	C(BAD_MEMBER,	"There is no such member"),			\
	C(BITFIELD,	"A bit field has no address"),			\
	C(BAD_COUNT,	"Invalid count"),				\
	C(BAD_TIMEOUT,	"Invalid timeout"),				\
	C(CLEAR_TIMEOUT, "Only set_wprobe has a timeout"),		\
	C(THIS_CPU_OPT,	"With this_cpu there is no timeout or window, and evict needs one slot"), \
	C(NO_WINDOW,	"No window: it needs an fprobe event at the entry of a function"), \
	C(BAD_FILTER,	"Invalid filter"),				\
	C(SECOND,	"The event has such a trigger for this watch event already"), \
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
 * @command: the whole command, for the error log
 * @start: the end of @command, which the parser splits at colons
 * @base: offset of @start in @command
 * @remove: the command removes a trigger
 * @wt: result: the trigger
 * @count: result: text of COUNT, or NULL
 */
struct wprobe_parse {
	struct trace_event_file	*file;
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
	tracing_log_err(p->file->tr, "wprobe_trigger", p->command, trigger_errors, type,
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
		return parse_error(p, name, FIELD_TYPE, -ENOEXEC);

	p->wt->field = field;
	return 0;
}

/* Ends @text before an arrow.  Returns the text behind it, or NULL. */
static char *cut_arrow(char *text)
{
	char *arrow = strstr(text, "->");

	if (!arrow)
		return NULL;
	*arrow = '\0';
	return arrow + 2;
}

/* Cuts [+|-OFFS] off the end of @text, and adds it to the offset of the trigger. */
static int parse_offset(struct wprobe_parse *p, char *text)
{
	char *sign = strpbrk(text, "+-");
	long offset;

	if (!sign)
		return 0;
	if (kstrtol(sign, 0, &offset))
		return parse_error(p, sign, BAD_OFFSET, -EINVAL);
	p->wt->offset += offset;
	*sign = '\0';
	return 0;
}

/* The offset so far is that of a pointer, and the arrow at @at follows it. */
static int add_arrow(struct wprobe_parse *p, const char *at)
{
	struct wprobe_trigger *wt = p->wt;

	if (wt->nr_arrows == MAX_ARROWS)
		return parse_error(p, at, MANY_ARROWS, -E2BIG);
	wt->arrows[wt->nr_arrows++] = wt->offset;
	wt->offset = 0;
	return 0;
}

/* [+|-]OFFS[->[+|-]OFFS...] behind an arrow */
static int parse_arrows(struct wprobe_parse *p, char *text)
{
	char *next;
	int err;

	for (; text; text = next) {
		err = add_arrow(p, text);
		if (err)
			return err;
		next = cut_arrow(text);
		if (kstrtol(text, 0, &p->wt->offset))
			return parse_error(p, text, BAD_OFFSET, -EINVAL);
	}

	return 0;
}

/* @at: what has determined the offset */
static int check_offset(const struct wprobe_parse *p, const char *at)
{
	if (!wprobe_is_aligned(&p->wt->tw->place, p->wt->offset))
		return parse_error(p, at, ALIGN, -EINVAL);
	return 0;
}

/* FIELD[+|-OFFS][->[+|-]OFFS...] */
static int parse_field(struct wprobe_parse *p, char *piece)
{
	char *arrows = cut_arrow(piece);
	const char *at = arrows ?: piece + strcspn(piece, "+-");

	return parse_offset(p, piece) ?: parse_arrows(p, arrows) ?: check_offset(p, at) ?:
	       find_field(p, piece);
}

#ifdef CONFIG_PROBE_EVENTS_BTF_ARGS
/*
 * @path: MEMBER[.MEMBER...] of @in, whose offsets are added to @offset.  @in becomes the type of
 * the last one.
 */
static int add_members(struct wprobe_parse *p, struct btf *btf,
		       const struct btf_type **in, char *path, long *offset)
{
	const struct btf_type *type = *in;
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
		*offset += bits / BITS_PER_BYTE;
		type = btf_type_skip_modifiers(btf, member->type, NULL);
	}

	*in = type;
	return 0;
}

/* MEMBER[.MEMBER...][+|-OFFS][->...] of @type; behind an arrow also [+|-]OFFS[->...] */
static int add_path(struct wprobe_parse *p, struct btf *btf, const struct btf_type *type,
		    char *path)
{
	char *next;
	int err;

	for (;;) {
		next = cut_arrow(path);
		err = parse_offset(p, path) ?: add_members(p, btf, &type, path, &p->wt->offset);
		if (err || !next)
			return err;
		if (strchr("+-", *next) || isdigit(*next))
			return parse_arrows(p, next);
		err = add_arrow(p, next);
		if (err)
			return err;
		type = btf_type_is_ptr(type) ? btf_type_skip_modifiers(btf, type->type, NULL) :
					       NULL;
		path = next;
	}
}

/* @from: the member to which FIELD points, or NULL if it points to the structure */
static int parse_members(struct wprobe_parse *p, const char *type_name, char *from,
			 char *path)
{
	const struct btf_type *type, *in;
	long start = 0;
	struct btf *btf;
	s32 id;
	int err;

	id = bpf_find_btf_id(type_name, BTF_KIND_STRUCT, &btf);
	if (id < 0)
		id = bpf_find_btf_id(type_name, BTF_KIND_UNION, &btf);
	if (id < 0)
		return parse_error(p, type_name, BAD_TYPE, -ENOENT);

	type = btf_type_by_id(btf, id);
	in = type;
	err = from ? add_members(p, btf, &in, from, &start) : 0;
	p->wt->offset = -start;
	if (!err)
		err = add_path(p, btf, type, path);
	btf_put(btf);
	return err;
}
#else
static int parse_members(struct wprobe_parse *p, const char *type_name, char *from,
			 char *path)
{
	return parse_error(p, type_name, BAD_TYPE, -EOPNOTSUPP);
}
#endif

/* (TYPE[,FROM])FIELD->MEMBER[.MEMBER...][+|-OFFS][->...] */
static int parse_typed_field(struct wprobe_parse *p, char *piece)
{
	char *type = piece + 1, *close = strchr(piece, ')'), *path, *from;
	int err;

	if (!close)
		return parse_error(p, type, BAD_TYPE, -EINVAL);
	path = cut_arrow(close);
	if (!path)
		return parse_error(p, close + 1, NO_ARROW, -EINVAL);
	*close = '\0';
	from = strchr(type, ',');
	if (from)
		*from++ = '\0';

	err = find_field(p, close + 1);
	if (!err)
		err = parse_members(p, type, from, path);
	return err ?: check_offset(p, path);
}

/* @text: starts with a piece */
static bool starts_with(const char *text, const char *piece)
{
	size_t len = str_has_prefix(text, piece);

	return len && (!text[len] || text[len] == ':');
}

static bool is_count(const char *piece)
{
	return isdigit(*piece) || !strcmp(piece, "unlimited") ||
	       str_has_prefix(piece, "count=");
}

static bool is_option(const char *text)
{
	return is_count(text) || starts_with(text, "this_cpu") ||
	       starts_with(text, "window") || starts_with(text, "evict") ||
	       str_has_prefix(text, "timeout=");
}

/* The field, which may be absent in clear_wprobe and when a trigger is removed */
static int parse_expr(struct wprobe_parse *p, char **pieces)
{
	char *piece = *pieces;
	bool absent = !piece || is_option(piece);

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

static bool set_once(bool *option)
{
	bool first = !*option;

	*option = true;
	return first;
}

/* Digits, then ms or s; without a unit these are ms. */
static int parse_timeout(struct wprobe_parse *p, const char *piece)
{
	const char *unit;
	u64 nr = 0;
	int len = 0;

	if (p->wt->clear)
		return parse_error(p, piece, CLEAR_TIMEOUT, -EINVAL);
	piece += strlen("timeout=");
	/* As many digits as UINT_MAX has: further ones are no unit. */
	if (!isdigit(*piece) || sscanf(piece, "%10llu%n", &nr, &len) != 1)
		return parse_error(p, piece, BAD_TIMEOUT, -EINVAL);
	unit = piece + len;
	if (!strcmp(unit, "s"))
		nr *= MSEC_PER_SEC;
	else if (*unit && strcmp(unit, "ms"))
		nr = 0;
	if (!nr || nr > UINT_MAX || p->wt->how.timeout)
		return parse_error(p, piece, BAD_TIMEOUT, -EINVAL);
	p->wt->how.timeout = nr * NSEC_PER_MSEC;
	return 0;
}

static int parse_option(struct wprobe_parse *p, const char *piece)
{
	/* Nothing may follow COUNT. */
	if (p->count)
		return parse_error(p, piece, BAD_COUNT, -EINVAL);
	if (str_has_prefix(piece, "timeout="))
		return parse_timeout(p, piece);
	if (!strcmp(piece, "this_cpu") && set_once(&p->wt->how.this_cpu))
		return 0;
	if (!strcmp(piece, "window") && !p->wt->clear && set_once(&p->wt->window))
		return 0;
	if (!strcmp(piece, "evict") && !p->wt->clear && set_once(&p->wt->how.evict))
		return 0;
	if (!is_count(piece))
		return parse_error(p, piece, BAD_COUNT, -EINVAL);
	p->count = piece;
	return 0;
}

static int check_options(struct wprobe_parse *p)
{
	const struct wprobe_how *how = &p->wt->how;

	if (how->this_cpu && !p->remove &&
	    (how->timeout || p->wt->window || (how->evict && p->wt->tw->nr_slots > 1)))
		return parse_error(p, p->start, THIS_CPU_OPT, -EINVAL);
	return 0;
}

/* [:this_cpu|:window][:evict][:timeout=TIME][:COUNT], also as print_trigger() prints them */
static int parse_options(struct wprobe_parse *p, char *pieces)
{
	char *piece;
	int err;

	while ((piece = strsep(&pieces, ":"))) {
		err = parse_option(p, piece);
		if (err)
			return err;
	}

	return check_options(p);
}

static int parse_param(struct wprobe_parse *p, char *pieces)
{
	int err;

	err = parse_event(p, strsep(&pieces, ":"));
	if (!err)
		err = parse_expr(p, &pieces);
	if (!err)
		err = parse_options(p, pieces);
	p->wt->indirect = p->wt->window || p->wt->nr_arrows;
	return err;
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
	if (has_windows(wt))
		rethook_free(wt->rethook);
	kfree(wt->expr);
	kfree(wt);
}

/* Ends what start_recording() has started, with the last trigger that may start it. */
static void stop_recording(struct wprobe_trigger *wt)
{
	struct wprobe_trigger *other;

	lockdep_assert_held(&event_mutex);

	list_for_each_entry(other, &set_triggers, link) {
		if (other->file == wt->file)
			return;
	}
	if (test_and_clear_bit(EVENT_FILE_FL_STARTED_BIT, &wt->file->flags))
		set_bit(EVENT_FILE_FL_SOFT_DISABLED_BIT, &wt->file->flags);
}

static void release_events(struct wprobe_trigger *wt)
{
	if (!wt->clear) {
		list_del(&wt->link);
		stop_recording(wt);
		trace_wprobe_forget(wt->tw, &wt->how);
	}
	/* Their ends were stopped: other triggers with windows may have joined them, too. */
	if (wt->window)
		trace_wprobe_leave_all(wt->tw);
	trace_wprobe_release(wt->tw, !wt->clear);
	trace_event_enable_disable(wt->file, 0, 1);
	trace_event_put_ref(wt->file->event_call);
	trace_event_put_ref(wt->call);
}

/*
 * The trigger is on no list, but CPUs may still be running it or ending its windows.  Wait
 * for them before the watch event is disabled and its breakpoints are freed.
 */
static void free_trigger(struct event_trigger_data *data)
{
	struct wprobe_trigger *wt = data->private_data;

	if (WARN_ON_ONCE(data->ref <= 0) || --data->ref)
		return;
	if (has_windows(wt))
		rethook_stop(wt->rethook);
	tracepoint_synchronize_unregister();
	release_events(wt);
	trigger_data_free(data);
	free_wt(wt);
}

/*
 * An event has one set_wprobe for a watch event, and one clear_wprobe for each field.  A command
 * without a field removes a clear_wprobe with any field.
 */
static struct event_trigger_data *find_trigger(struct wprobe_parse *p,
					       const struct event_command *cmd_ops)
{
	const struct wprobe_trigger *other, *wt = p->wt;
	struct event_trigger_data *data;

	lockdep_assert_held(&event_mutex);

	list_for_each_entry(data, &p->file->triggers, list) {
		other = data->private_data;
		if (data->cmd_ops != cmd_ops || other->tw != wt->tw)
			continue;
		if (!wt->clear || (p->remove && !wt->expr) ||
		    !strcmp(wt->expr ?: "", other->expr ?: ""))
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

static int enable_trigger(struct event_trigger_data *data, struct trace_event_file *file)
{
	int err;

	list_add_rcu(&data->list, &file->triggers);
	update_cond_flag(file);
	err = trace_event_trigger_enable_disable(file, 1);
	if (err)
		unlink_trigger(data, file);

	return err;
}

/* Softly enables the watch event, and holds its registers whatever disables the event. */
static int enable_softly(const struct wprobe_trigger *wt)
{
	int err;

	err = trace_event_enable_disable(wt->file, 1, 1);
	if (err)
		return err;
	err = trace_wprobe_hold(wt->tw, wt->file->tr, !wt->clear);
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
		if (!err && !p->wt->clear)
			list_add(&p->wt->link, &set_triggers);
		if (!err)
			return 0;
		trace_event_put_ref(file->event_call);
		parse_error(p, p->start, NO_ENABLE, err);
	}
	trace_event_put_ref(p->file->event_call);
	return err;
}

static int init_windows(struct wprobe_parse *p)
{
	struct wprobe_trigger *wt = p->wt;
	struct rethook *rethook;

	if (!wt->window)
		return 0;
	if (!IS_ENABLED(CONFIG_FPROBE_EVENTS) || !trace_fprobe_is_entry(wt->call))
		return parse_error(p, p->start, NO_WINDOW, -EOPNOTSUPP);
	rethook = rethook_alloc(wt, close_window, sizeof(struct window), MAX_CALLS);
	if (IS_ERR(rethook))
		return PTR_ERR(rethook);
	wt->rethook = rethook;
	return 0;
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
	err = init_windows(p) ?: hold_events(p);
	if (err)
		return err;

	data->private_data = p->wt;
	event_trigger_init(data);
	err = enable_trigger(data, p->file);
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

	if (find_trigger(p, cmd_ops))
		return parse_error(p, p->start, SECOND, -EEXIST);
	data = trigger_data_alloc(cmd_ops, NULL, NULL, NULL);
	if (!data)
		return -ENOMEM;
	err = add_data(p, cmd_ops, data, filter);
	if (err)
		trigger_data_free(data);

	return err;
}

/* As for other triggers, it is no error if there is none. */
static void remove_trigger(struct wprobe_parse *p, const struct event_command *cmd_ops)
{
	struct event_trigger_data *data = find_trigger(p, cmd_ops);

	if (!data)
		return;
	unlink_trigger(data, p->file);
	trace_event_trigger_enable_disable(p->file, 0);
	free_trigger(data);
}

/* @text: the command after its name and a colon */
static int parse_text(struct wprobe_parse *p, struct event_command *cmd_ops, char *text)
{
	char *param, *filter;
	int err;

	event_trigger_separate_filter(text, &param, &filter, true);
	err = parse_param(p, param);
	if (err)
		return err;
	if (!p->remove)
		return add_trigger(p, cmd_ops, filter);
	remove_trigger(p, cmd_ops);
	return 0;
}

/* Ends @text before a comment such as print_state() writes: " #" that is not quoted. */
static void cut_comment(char *text)
{
	char quote = '\0';

	for (; *text; text++) {
		if (!quote && isspace(text[0]) && text[1] == '#') {
			*text = '\0';
			return;
		}
		if (*text == quote)
			quote = '\0';
		else if (!quote && (*text == '"' || *text == '\''))
			quote = *text;
	}
}

static int parse_trigger(struct event_command *cmd_ops, struct trace_event_file *file,
			 char *glob, char *cmd, char *param_and_filter)
{
	struct wprobe_parse p = { .file = file };
	int err;

	if (param_and_filter)
		cut_comment(param_and_filter);
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
	p.wt->how.expired = &p.wt->counts[NR_EXPIRED];
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

/*
 * A comment, which cut_comment() removes if the line is written back.  In brackets what
 * may change at any time: tests remove it.
 */
static void print_state(struct seq_file *m, struct wprobe_trigger *wt)
{
	unsigned int i, slots = wt->tw->nr_slots;
	const char *before = " #";
	long nr;

	if (slots > 1) {
		seq_printf(m, "%s slots: %u/%u", before, trace_wprobe_used(wt->tw), slots);
		before = "";
	}
	for (i = 0; i < NR_COUNTS; i++) {
		nr = atomic_long_read(&wt->counts[i]);
		if (!nr)
			continue;
		seq_printf(m, "%s %s: %ld", before, count_names[i], nr);
		before = "";
	}
	if (!trace_wprobe_is_settled(wt->tw))
		seq_printf(m, "%s [unsettled]", before);
}

static int print_trigger(struct seq_file *m, struct event_trigger_data *data)
{
	struct wprobe_trigger *wt = data->private_data;

	seq_puts(m, data->cmd_ops->name);
	print_event(m, wt->file->event_call);
	if (wt->expr)
		seq_printf(m, ":%s", wt->expr);
	if (wt->how.this_cpu)
		seq_puts(m, ":this_cpu");
	if (wt->window)
		seq_puts(m, ":window");
	if (wt->how.evict)
		seq_puts(m, ":evict");
	if (wt->how.timeout)
		seq_printf(m, ":timeout=%llums", div_u64(wt->how.timeout, NSEC_PER_MSEC));
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

#define WPROBE_COMMAND(cmd, run) {				\
	.name		= cmd,					\
	.trigger_type	= ETT_EVENT_WPROBE,			\
	.flags		= EVENT_CMD_FL_NEEDS_REC,		\
	.parse		= parse_trigger,			\
	.set_filter	= set_trigger_filter,			\
	.trigger	= run,					\
	.print		= print_trigger,			\
	.free		= free_trigger,				\
}

static struct event_command set_wprobe_cmd = WPROBE_COMMAND("set_wprobe", run_set);
static struct event_command clear_wprobe_cmd = WPROBE_COMMAND("clear_wprobe", run_clear);

static __init int register_wprobe_triggers(void)
{
	return register_event_command(&set_wprobe_cmd) ?:
	       register_event_command(&clear_wprobe_cmd);
}
fs_initcall(register_wprobe_triggers);
