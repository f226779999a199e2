/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Model of kernel/events/bp_wide.c: a kernel-wide set whose address is one word.
 *
 * Two CPUs.  CPU 0 repoints the set in a task, of which an NMI may interrupt any step; the
 * NMI repoints the set, or CPU 0 alone.  CPU 1 repoints the set.
 * SCENARIO selects what else there is, so that each search ends within seconds:
 *
 *  1	unconditional changes, of which that of CPU 0 is inside a batch of the backend; CPU 1
 *	waits until its change is settled
 *  2	the change of CPU 0 is a compare-and-change, and CPU 0 may have been repointed alone
 *  3	CPU 0 repoints itself alone, unconditionally or with a comparison
 *  4	without the NMI: CPU 1 repoints itself alone, goes offline, repoints the set while it is
 *	not online, and comes online again
 *
 * MUTANT breaks one step; each has to fail in the scenario that model/check names.
 *
 * All steps of the model are sequentially consistent.  The code has an acquire for the read of
 * seq, and a fully ordered increment of it.  The pair of a CPU is published in one step: the
 * double buffer that makes it so is tested by bp_wide_test.c.
 */
#ifndef SCENARIO
#define SCENARIO 1
#endif
#ifndef MUTANT
#define MUTANT 0
#endif

#define N 2

/* Addresses: at the start, and by whom they are set */
#define FIRST	0
#define TASK0	1
#define TASK1	2
#define NMI_ALL	3
#define OFFLINE	4
#define ALONE0	5
#define NMI_ONE	6
#define ALONE1	7

byte addr = FIRST;
byte seq = 1;

/* The pair of a CPU; now is its generation */
byte pair_seq[N];
byte pair_addr[N];
byte now[N];

bool online[N];
bool event[N];
byte seen[N];
bool kick[N];

/* The backend: attr is what the event watches, reg the register */
byte attr[N];
byte reg[N];
bool open[N];
bool syncing[N];
bool stale[N];

/* Interrupts are off */
bool off[N];
bool in_nmi = false;
byte running = 0;
/* What the rules refer to */
bool nmi_alone = false;
byte nmi_seq = 0;
bool failed0 = false;
bool started_alone = false;
bool others = false;

/* ---- The code; s, n, a, v, alone are variables of the process ---- */

inline read_here(c)
{
	do
	:: atomic { n = now[c]; pseq = pair_seq[c]; paddr = pair_addr[c] };
	   s = seq;
	   all = addr;
	   alone = (event[c] && pseq == s);
	   a = (alone -> paddr : all);
	   if
	   :: atomic { now[c] == n && (seq == s) -> break }
	   :: else
	   fi
	od
}

inline sync(c)
{
	do
	:: stale[c] ->
	   syncing[c] = true;
	   stale[c] = false;
	   v = attr[c];
	   reg[c] = v;
	   syncing[c] = false
	:: else -> break
	od
}

/* arch_hw_breakpoint_repoint(): at once, unless a batch is open or an update interrupted */
inline apply(c)
{
	if
	:: open[c] || syncing[c] -> stale[c] = true
	:: else ->
	   syncing[c] = true;
	   v = attr[c];
	   reg[c] = v;
	   syncing[c] = false;
	   sync(c)
	fi
}

/*
 * The state of a CPU alone is not read by others.  So an NMI, and CPU 1, which has none,
 * change it in one step together with the next access to the set.
 */
inline apply_at_once(c)
{
	if
	:: open[c] || syncing[c] -> stale[c] = true
	:: else -> stale[c] = false; reg[c] = attr[c]
	fi
}

inline adopt_at_once(c)
{
	do
	:: s = seq;
	   atomic {
		all = addr;
		alone = (event[c] && pair_seq[c] == s);
		a = (alone -> pair_addr[c] : all);
		if
		:: event[c] -> attr[c] = a; apply_at_once(c)
		:: else
		fi;
		seen[c] = s
	   };
	   if
	   :: atomic { MUTANT == 1 || seq == s -> break }
	   :: else
	   fi
	od
}

inline adopt(c)
{
	do
	:: read_here(c);
	   if
	   :: event[c] -> attr[c] = a; apply(c)
	   :: else
	   fi;
	   seen[c] = s;
	   if
	   :: atomic { MUTANT == 1 || (now[c] == n && seq == s) -> break }
	   :: else
	   fi
	od
}

/* Returns in ok whether the generation was still n. */
inline publish_pair(c, to)
{
	atomic {
		ok = (now[c] == n);
		if
		:: ok -> pair_seq[c] = s; pair_addr[c] = to; now[c] = now[c] + 1
		:: else
		fi
	}
}

/* Returns in mine the value of seq after the change. */
inline advance()
{
	atomic { seq = seq + 1; mine = seq }
}

/* A context that interrupted the comparison has repointed this CPU alone: that is later. */
inline keep_pair(c, before)
{
	do
	:: atomic { n = now[c]; pseq = pair_seq[c]; paddr = pair_addr[c] };
	   if
	   :: n == before || pseq != mine - 1 || MUTANT == 3 -> break
	   :: else ->
	      atomic { s = mine; publish_pair(c, paddr) };
	      if
	      :: ok -> break
	      :: else
	      fi
	   fi
	od
}

inline change_all(c, to)
{
	if
	:: MUTANT == 2 -> advance(); addr = to
	:: else -> addr = to; advance()
	fi
}

inline change_all_from(c, from, to)
{
	read_here(c);
	old = all;
	ok = (a == from);
	if
	:: ok ->
	   atomic { ok = (addr == old); if :: ok -> addr = to :: else fi };
	   if
	   :: ok ->
	      old = n;
	      sold = s;
	      advance();
	      if
	      :: mine == sold + 1 -> keep_pair(c, old)
	      :: else
	      fi;
	      ok = true
	   :: else
	   fi
	:: else
	fi
}

inline change_one(c, to)
{
	do
	:: read_here(c);
	   publish_pair(c, to);
	   if
	   :: ok && seq == s -> break
	   :: else
	   fi
	od
}

inline change_one_from(c, from, to)
{
	do
	:: read_here(c);
	   if
	   :: a != from -> ok = false; break
	   :: else
	   fi;
	   publish_pair(c, to);
	   if
	   :: ok -> break
	   :: else
	   fi
	od
}

inline kick_others(c)
{
	i = 0;
	do
	:: i < N ->
	   if
	   :: i != c && online[i] && seen[i] != seq -> kick[i] = true
	   :: else
	   fi;
	   i = i + 1
	:: else -> break
	od
}

/* Fewer states: the variables of a process that has ended do not matter. */
inline forget()
{
	s = 0; n = 0; a = 0; v = 0; all = 0; pseq = 0; paddr = 0; alone = 0
}

inline finish()
{
	skip;
	d_step { forget(); mine = 0; old = 0; sold = 0; i = 0; ok = 0; running-- }
}

#define VARS	byte s, n, a, v, all, pseq, paddr, mine, old, sold, i; bool ok, alone

/* ---- CPU 0: the NMI runs to its end before another step of the CPU ---- */

proctype task0() provided (!in_nmi)
{
	VARS;

	atomic { !off[0] -> off[0] = true };
#if SCENARIO == 1
	open[0] = true;
	change_all(0, TASK0);
	adopt(0);
	open[0] = false;
	sync(0);
#elif SCENARIO == 2
	if
	:: started_alone = true; change_one(0, ALONE0); adopt(0);
	   change_all_from(0, ALONE0, TASK0)
	:: change_all_from(0, FIRST, TASK0)
	fi;
	if
	:: ok -> adopt(0)
	:: else -> failed0 = true
	fi;
#elif SCENARIO == 3
	if
	:: change_one(0, ALONE0); ok = true
	:: change_one_from(0, FIRST, ALONE0)
	fi;
	if
	:: ok -> adopt(0)
	:: else -> failed0 = true
	fi;
#else
	change_all(0, TASK0);
	adopt(0);
#endif
	off[0] = false;
#if SCENARIO == 1 || SCENARIO == 4
	kick_others(0);
#endif
	finish()
}

proctype nmi0()
{
	VARS;

	in_nmi = true;
	if
	:: change_all(0, NMI_ALL)
#if SCENARIO != 4
	:: atomic { change_one(0, NMI_ONE); nmi_alone = true; nmi_seq = pair_seq[0] }
#endif
	fi;
	adopt_at_once(0);
	/* An irq_work of CPU 0 kicks the others. */
#if SCENARIO == 1
	kick[1] = true;
#endif
	finish();
	in_nmi = false
}

/* ---- CPU 1 ---- */

#if SCENARIO != 4
proctype task1()
{
	VARS;

#if SCENARIO != 1
	/* CPU 1 is only a repointer here. */
	if
	:: change_all(1, TASK1); kick[0] = true; others = true
	:: skip
	fi;
#else
	atomic { !off[1] -> off[1] = true };
	change_all(1, TASK1);
	adopt_at_once(1);
	off[1] = false;
	kick_others(1);
	/* Settled: no CPU watches what the set watched before. */
	atomic { seen[0] >= mine && seen[1] >= mine && !off[0] && !off[1] && !in_nmi ->
		 assert(reg[0] != FIRST && reg[1] != FIRST) };
#endif
	finish()
}
#else
proctype task1()
{
	VARS;

	atomic { !off[1] -> off[1] = true };
	change_one(1, ALONE1);
	adopt_at_once(1);
	off[1] = false;
	/* bp_wide_cpu_offline(); stop_machine() runs the pending irq_works. */
	atomic { !off[1] -> off[1] = true; event[1] = false };
	online[1] = false;
	if
	:: atomic { kick[1] -> kick[1] = false }; adopt_at_once(1)
	:: else
	fi;
	/* A CPU that is not online kicks no other one. */
	if
	:: change_all(1, OFFLINE); adopt_at_once(1)
	:: skip
	fi;
	atomic { reg[1] = FIRST; attr[1] = FIRST };
	online[1] = true;
	off[1] = false;
	/* bp_wide_cpu_online(): kick the others, then make the event. */
	if
	:: MUTANT != 4 -> kick_others(1)
	:: else
	fi;
	atomic { !off[1] -> off[1] = true };
	a = addr;
	attr[1] = a;
	atomic { pair_seq[1] = 0; now[1] = now[1] + 1 };
	event[1] = true;
	if
	:: MUTANT != 5 -> adopt_at_once(1)
	:: else
	fi;
	off[1] = false;
	finish()
}
#endif

/* ---- Kicks ---- */

proctype irq0() provided (!in_nmi)
{
	VARS;
end:
	do
	:: atomic { kick[0] && !off[0] -> off[0] = true; kick[0] = false };
	   adopt(0);
	   atomic { forget(); off[0] = false }
	od
}

proctype irq1()
{
	VARS;
end:
	do
	:: atomic { kick[1] && !off[1] -> off[1] = true; kick[1] = false };
	   adopt_at_once(1);
	   atomic { forget(); off[1] = false }
	od
}

#define quiet	(running == 0 && !in_nmi && !kick[0] && !kick[1] && !off[0] && !off[1])
#define WATCHED(c) (pair_seq[c] == seq -> pair_addr[c] : addr)

/* When all is quiet each CPU watches the address of the set, or its own. */
proctype monitor()
{
	atomic {
		quiet;
		assert(reg[0] == WATCHED(0) && attr[0] == reg[0]);
		assert(seen[0] == seq);
#if SCENARIO == 1 || SCENARIO == 4
		assert(reg[1] == WATCHED(1) && attr[1] == reg[1]);
		assert(seen[1] == seq);
#endif
#if SCENARIO == 1
		assert(reg[1] == addr);
#elif SCENARIO == 2
		/* A change of CPU 0 alone stays until the next change of all. */
		assert(!nmi_alone || nmi_seq != seq || started_alone || reg[0] == NMI_ONE);
		/* Also one that comes in the middle of the only change of all */
		assert(!nmi_alone || others || started_alone || reg[0] == NMI_ONE);
		assert(!failed0 || addr != TASK0);
#elif SCENARIO == 3
		assert(!failed0 || reg[0] != ALONE0);
#endif
	}
}

init
{
	atomic {
		online[0] = true; online[1] = true;
		event[0] = true; event[1] = true;
		seen[0] = seq; seen[1] = seq;
		running = 3;
		run task0();
		run task1();
#if SCENARIO == 4
		running = 2;
#else
		run nmi0();
#endif
		run irq0();
#if SCENARIO == 1 || SCENARIO == 4
		run irq1();
#endif
		run monitor()
	}
}
