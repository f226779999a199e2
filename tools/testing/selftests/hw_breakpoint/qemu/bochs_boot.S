/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The first sector of a disk of bochs_disk: reads the areas that follow it on the disk to
 * memory and starts the kernel with the 32-bit boot protocol, see
 * Documentation/arch/x86/boot.rst. It needs no service of the BIOS, which would read in
 * real mode and is several times slower.
 */

/* As in bochs_disk */
#define BOOT_PARAMS	0x10000
#define KERNEL		0x100000
#define AREAS		0x1de

#define CODE_SEGMENT	0x10
#define DATA_SEGMENT	0x18

/* Registers of the first ATA controller */
#define ATA_DATA	0x1f0
#define ATA_COUNT	0x1f2
#define ATA_CONTROL	0x3f6
#define NO_INTERRUPTS	0x02
#define LBA		0xe0000000
#define READ_SECTORS	0x20
#define BUSY		0x80
#define DATA_READY	0x08

	.code16
	.globl	_start
_start:
	cli
	cld
	/* Gate A20 */
	inb	$0x92, %al
	orb	$2, %al
	outb	%al, $0x92
	xorw	%ax, %ax
	movw	%ax, %ds
	lgdtl	gdt_register
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	ljmpl	$CODE_SEGMENT, $protected

	.code32
protected:
	movw	$DATA_SEGMENT, %ax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	movw	$ATA_CONTROL, %dx
	movb	$NO_INTERRUPTS, %al
	outb	%al, %dx

	/* %esi: area, %ebx: sector on the disk, %edi: address, %ebp: sectors to go */
	movl	$areas, %esi
	movl	$1, %ebx
next_area:
	lodsl
	movl	%eax, %edi
	lodsl
	movl	%eax, %ebp
	testl	%eax, %eax
	jz	start_kernel

next_sector:
	movw	$ATA_COUNT, %dx
	movb	$1, %al
	outb	%al, %dx
	movl	%ebx, %eax
	orl	$LBA, %eax
	movl	$4, %ecx
1:	incw	%dx
	outb	%al, %dx
	shrl	$8, %eax
	loop	1b
	incw	%dx
	movb	$READ_SECTORS, %al
	outb	%al, %dx
2:	inb	%dx, %al
	andb	$(BUSY | DATA_READY), %al
	cmpb	$DATA_READY, %al
	jne	2b
	movw	$ATA_DATA, %dx
	movl	$256, %ecx
	rep insw
	incl	%ebx
	decl	%ebp
	jnz	next_sector
	jmp	next_area

start_kernel:
	movl	$BOOT_PARAMS, %esi
	xorl	%edi, %edi
	xorl	%ebx, %ebx
	movl	$KERNEL, %eax
	jmp	*%eax

	.balign	8
gdt:
	.quad	0, 0
	.quad	0x00cf9a000000ffff
	.quad	0x00cf92000000ffff
gdt_register:
	.word	gdt_register - gdt - 1
	.long	gdt

	/* An address and a number of sectors each, up to a number of 0 */
	.org	AREAS
areas:
	.fill	4, 8, 0
	.word	0xaa55
