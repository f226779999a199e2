// SPDX-License-Identifier: GPL-2.0
// names_go: names of Go, see names.h. println() is used to not need more packages.
package main

import (
	"syscall"
	"unsafe"
)

type account struct {
	id    int32
	money int64
	name  string
}

var counter int64 = 1
var acc = account{name: "abc"}
var ptr = &account{id: 3}
var list = []int32{1, 2, 3}
var table [4]int16
var name = "abc"

//go:noinline
func bump(n int64) {
	counter += n
	acc.money -= n
	ptr.id++
	list[1]++
	table[2]++
	name += "."
}

func row(place string, at unsafe.Pointer, size uintptr, gdb string) {
	print(place, "\t", at, "\t", size, "\t\t", gdb, "\n")
}

func main() {
	bump(1)
	row("main.counter", unsafe.Pointer(&counter), unsafe.Sizeof(counter), "'main.counter'")
	row("counter", unsafe.Pointer(&counter), unsafe.Sizeof(counter), "'main.counter'")
	row("main.acc.money", unsafe.Pointer(&acc.money), unsafe.Sizeof(acc.money), "'main.acc'.money")
	row("main.acc", unsafe.Pointer(&acc), unsafe.Sizeof(acc), "'main.acc'")
	row("main.ptr", unsafe.Pointer(&ptr), unsafe.Sizeof(ptr), "'main.ptr'")
	row("main.ptr.id", unsafe.Pointer(&ptr.id), unsafe.Sizeof(ptr.id), "'main.ptr'->id")
	row("main.list[1]", unsafe.Pointer(&list[1]), unsafe.Sizeof(list[1]), "'main.list'.array[1]")
	row("main.list.len", unsafe.Add(unsafe.Pointer(&list), 8), 8, "'main.list'.len")
	row("main.table[2]", unsafe.Pointer(&table[2]), unsafe.Sizeof(table[2]), "'main.table'[2]")
	row("main.table", unsafe.Pointer(&table), unsafe.Sizeof(table), "'main.table'")
	row("main.name.len", unsafe.Add(unsafe.Pointer(&name), 8), 8, "'main.name'.len")
	println("ready")
	syscall.Read(0, make([]byte, 1))
}
