#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The packages boot Debian.
. "$(dirname "$0")/tap.sh"

release=$(uname -r)

kernel_is_the_one_of_the_package()
{
	run dpkg-query --search "/boot/vmlinuz-$release" &&
		expect "^linux-image-$release: "
}

initramfs_was_made_at_installation()
{
	test -s "/boot/initrd.img-$release"
}

packages_are_configured()
{
	run dpkg --audit
	test ! -s "$tmp/out" && run dpkg-query --show --showformat '${db:Status-Abbrev}\n' \
		"linux-image-$release" hwbp && expect '^ii' && ! grep -qv '^ii' "$tmp/out"
}

modules_of_the_package_load()
{
	run modprobe data_breakpoint ksym=init_uts_ns && grep -q '^data_breakpoint ' /proc/modules &&
		run modprobe --remove data_breakpoint
}

multi_user_target_is_reached()
{
	run systemctl start multi-user.target &&
		run systemctl is-active multi-user.target && expect '^active$'
}

no_unit_failed()
{
	run systemctl list-units --failed --no-legend --plain
	test ! -s "$tmp/out" || { sed 's/^/# /' "$tmp/out"; false; }
}

features_are_in_sysfs()
{
	run ls /sys/bus/event_source/devices/breakpoint/caps && expect .
}

no_pmu_of_a_test_is_left()
{
	test ! -e /sys/bus/event_source/devices/breakpoint_test_hw
}

run_tests kernel_is_the_one_of_the_package initramfs_was_made_at_installation \
	packages_are_configured modules_of_the_package_load multi_user_target_is_reached \
	no_unit_failed features_are_in_sysfs no_pmu_of_a_test_is_left
