// SPDX-License-Identifier: GPL-2.0
/* names_cxx: names of C++, see names.h. */
#include <atomic>

#include "names.h"

namespace shop {
int counter = 1;

struct Item {
	long price;
	int quantity;
	bool sold;
} best = { 1, 2, false };

class Base {
public:
	int base = 1;
	virtual ~Base() {}
};

class Cart : public Base {
public:
	static int total;
	int n = 1;

	virtual void add(int k)
	{
		static int adds;

		adds++;
		n += k;
		total += k;
		ROW_AS("shop::Cart::add::adds", adds, "");
	}
};

int Cart::total = 1;
Cart cart;
Base &reference = cart;

inline namespace v1 {
long versioned = 1;
}

namespace deep {
int level = 1;

template <class T> struct Box {
	static T last;

	static void set(T value)
	{
		last = value;
	}
};

template <class T> T Box<T>::last{};
}

std::atomic<long> hits{ 0 };

void overloaded(int n)
{
	counter += n;
}

void overloaded(long n)
{
	counter += n;
}
}

namespace {
int unnamed = 1;
}

static int file_static = 1;
int plain = 1;
int &alias = plain;
static thread_local int per_thread = 1;

struct Derived : shop::Item {
	int derived;
} derived;

static void bump(int by)
{
	static int calls;

	calls += by;
	ROW_AS("bump::calls", calls, "bump(int)::calls");
}

static void bump_more(int by)
{
	static int calls;

	calls += by;
	ROW_AS("bump_more::calls", calls, "bump_more(int)::calls");
}

int main()
{
	shop::Cart *pointer = &shop::cart;
	void (shop::Cart::*add)(int) = &shop::Cart::add;

	shop::deep::Box<int>::set(2);
	shop::deep::Box<unsigned long>::set(2);
	ROW(shop::counter);
	ROW(shop::best.quantity);
	ROW(shop::best);
	ROW_AS("shop::Cart::total", shop::Cart::total, "'shop::Cart::total'");
	ROW_AS("Cart::total", shop::Cart::total, "'shop::Cart::total'");
	ROW_AS("total", shop::Cart::total, "'shop::Cart::total'");
	ROW(shop::cart.n);
	ROW(shop::cart.base);
	ROW_AS("_ZN4shop4cartE.n", shop::cart.n, "shop::cart.n");
	ROW(shop::reference.base);
	ROW(shop::versioned);
	ROW(shop::v1::versioned);
	ROW(shop::deep::level);
	ROW_AS("deep::level", shop::deep::level, "shop::deep::level");
	ROW_AS("shop::deep::Box<int>::last", shop::deep::Box<int>::last,
	       "'shop::deep::Box<int>::last'");
	ROW_AS("shop::deep::Box<unsigned long>::last", shop::deep::Box<unsigned long>::last,
	       "'shop::deep::Box<unsigned long>::last'");
	ROW(shop::hits);
	ROW(::plain);
	ROW(alias);
	ROW(derived.derived);
	ROW(derived.quantity);
	ROW(file_static);
	ROW_AS("unnamed", unnamed, "");
	ROW_AS("(anonymous namespace)::unnamed", unnamed, "(anonymous namespace)::unnamed");
	ROW_AS("names_cxx.cc:file_static", file_static, "");
	ROW_TLS(per_thread);
	ROW_FUNCTION("shop::overloaded(int)", (void (*)(int))shop::overloaded, "");
	ROW_FUNCTION("shop::overloaded(long)", (void (*)(long))shop::overloaded, "");
	ROW_FUNCTION("deep::Box<int>::set", shop::deep::Box<int>::set, "");
	ROW_FUNCTION("bump", bump, "");
	bump(1);
	bump_more(1);
	(pointer->*add)(1);
	rows_end();
	return per_thread - 1;
}
