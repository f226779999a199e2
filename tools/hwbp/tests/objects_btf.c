// SPDX-License-Identifier: GPL-2.0
/*
 * Types for hwbp trace --from: those of samples/hw_breakpoint/watched_objects.c, or others of
 * the same size. Only the BTF of this file is used.
 */
enum mood { CALM, ANGRY = 50 };

struct object {
	unsigned long id;
	union {
		unsigned long payload;
		struct {
			struct object *other;
		};
	};
	enum mood state;
	unsigned int flag : 1;
	char name[16];
};

struct owner {
	long count;
	struct object object;
};

struct owner owner;

void fill_payload(struct object *object);
void fill_payload(struct object *object)
{
	object->payload = object->id;
}
