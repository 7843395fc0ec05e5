# SPDX-License-Identifier: MIT
#
# TAP for shell scripts. Source it, then one line a test:
#
#	check 'a missing file is named' prints_its_name
#	skip 'it works under clang' 'no clang here'
#	tap_end
#
# A test is a command or a function; it runs in a subshell and passes with status 0, and what it
# printed is shown when it fails. $tmp is a directory that goes away at the end.

tap_number=0
tap_failures=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

check()
{
	tap_name=$1
	shift
	tap_number=$((tap_number + 1))
	if tap_output=$("$@" 2>&1); then
		echo "ok $tap_number - $tap_name"
		return
	fi
	tap_failures=$((tap_failures + 1))
	printf '%s\n' "$tap_output" | sed 's/^/# /'
	echo "not ok $tap_number - $tap_name"
}

skip()
{
	tap_number=$((tap_number + 1))
	echo "ok $tap_number - $1 # SKIP $2"
}

tap_end()
{
	echo "1..$tap_number"
	[ "$tap_failures" -eq 0 ]
	exit
}
