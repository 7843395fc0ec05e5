# SPDX-License-Identifier: MIT
#
# What the tests of `kilroy record` share. $1 SOURCE_DIR, $2 the folder of kilroy, $3 that of guest.
. "$1/tests/tap.sh"
PATH=$2:$3:$PATH
guest=$3/guest linked=$3/guest-linked static=$3/guest-static
export PATH LC_ALL=C

# A runtime directory of our own, to see what is left in it.
KILROY_RUNTIME_DIR=$tmp/runtime
export KILROY_RUNTIME_DIR
mkdir -m 700 "$KILROY_RUNTIME_DIR"
mkdir "$tmp/work"
cd "$tmp/work" || exit 1

is()
{
	[ "$1" = "$2" ] || { echo "got '$1', expected '$2'"; return 1; }
}

has()
{
	case $1 in
	*"$2"*) ;;
	*) echo "'$1' lacks '$2'"; return 1 ;;
	esac
}

# ends STATUS COMMAND...
ends()
{
	wanted=$1
	shift
	status=0
	"$@" || status=$?
	is "$status" "$wanted"
}

# says TEXT COMMAND...: its standard error is one line with TEXT.
says()
{
	text=$1
	shift
	"$@" 2>"$tmp/said" || true
	has "$(cat "$tmp/said")" "$text" && is "$(grep -c '' "$tmp/said")" 1
}

# events LOG [NAME]: how many.
events()
{
	kilroy print --json --keep "${2-guest.count}" "$1" 2>/dev/null | grep -c '"event"'
}

numbers()
{
	kilroy print --json --keep guest.count "$1" 2>/dev/null | sed -n 's/.*"n":\([0-9]*\).*/\1/p'
}

# gap_free FIRST: the numbers on standard input go up by one.
gap_free()
{
	awk -v next_number="$1" '$1 != next_number { print "gap before " $1; exit 1 } { next_number = $1 + 1 }'
}

# All of a command's 30 s, as long as it takes: polls for a condition.
wait_for()
{
	for _ in $(seq 600); do
		"$@" 2>/dev/null && return
		sleep 0.05
	done
	echo "waited for '$*' in vain"
	return 1
}

whole()
{
	kilroy print "$1" >/dev/null
}

nothing_left()
{
	is "$(ls "$KILROY_RUNTIME_DIR")" ''
}
