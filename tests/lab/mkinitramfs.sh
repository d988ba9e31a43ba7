#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# mkinitramfs.sh -o FILE [OPTION]...: make the guest's root as an initramfs.
#
#   -o FILE          where to write it (cpio, not compressed: the guest's emulated
#                    CPU would take longer to unpack it than to read it)
#   --modules DIR    lib/modules/RELEASE of the kernel (see fetch.sh)
#   --load NAME      with --modules: put this kernel module in, with all it needs,
#                    and load it at boot; may be given again
#   --root DIR       an installed tree (`make install DESTDIR=DIR`) to lay over it
#   --script FILE    program that init runs; without it init starts a shell
#   --file FILE      file or directory to put beside the script; may be given again
#   --conf FILE      shell assignments that init reads and exports
#
# Programs that are dynamically linked come with their libraries. No root rights:
# there is no device node in it, the kernel's devtmpfs makes them.
#
# Exit: 0 done, 1 failed, 2 usage.
set -eu

me=mkinitramfs.sh
here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin

die()
{
	echo "$me: $*" >&2
	exit 1
}

usage()
{
	echo "$me: $*; try --help" >&2
	exit 2
}

work=$(mktemp -d "${TMPDIR:-/tmp}/tierlab-root.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
top=$work/top
run=$top/lab

out='' modules='' script='' root='' conf='' loads=''
: >"$work/files"
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) sed -n '3,20s/^# \{0,1\}//p' "$0"; exit 0 ;;
	-o | --modules | --load | --root | --script | --file | --conf)
		[ $# -ge 2 ] || usage "option '$1' needs a value" ;;
	*) usage "unknown argument '$1'" ;;
	esac
	case $1 in
	-o) out=$2 ;;
	--modules) modules=$2 ;;
	--load) loads="$loads $2" ;;
	--root) root=$2 ;;
	--script) script=$2 ;;
	--file) printf '%s\n' "$2" >>"$work/files" ;;
	--conf) conf=$2 ;;
	esac
	shift 2
done
[ -n "$out" ] || usage "no -o FILE"

# add PROGRAM PLACE: copy a program of this machine into the tree.
add()
{
	mkdir -p "$top$(dirname "$2")"
	cp -L "$1" "$top$2"
}

# libraries FILE...: copy what dynamically linked files need, at the same paths.
libraries()
{
	# ldd fails on what is not dynamic; that is no error here.
	{ ldd "$@" 2>/dev/null || :; } >"$work/ldd"
	if grep -q '=> not found' "$work/ldd"; then
		die "a library is missing: $(grep '=> not found' "$work/ldd" | sort -u | tr -s '\t\n' ' ')"
	fi
	sed -n 's/^\t\(.* => \)\{0,1\}\(\/[^ ]*\) (0x[0-9a-f]*)$/\2/p' "$work/ldd" | sort -u |
	while IFS= read -r lib; do
		[ -e "$top$lib" ] || add "$lib" "$lib"
	done
}

# The layout of Debian: /bin and the like are names for /usr/bin and the like, so
# that a library found by either path is there once.
mkdir -p "$top/dev" "$top/proc" "$top/sys" "$top/run" "$top/tmp" "$top/root" "$top/etc" \
	"$top/var" "$top/home/user" "$top/usr/bin" "$top/usr/sbin" "$top/usr/lib" \
	"$top/usr/lib64" "$run"
for d in bin sbin lib lib64; do
	ln -s "usr/$d" "$top/$d"
done
ln -s ../run "$top/var/run"
ln -s ../tmp "$top/var/tmp"

busybox=$(command -v busybox) || die "no busybox; install busybox-static"
if ldd "$busybox" >/dev/null 2>&1; then
	die "$busybox is dynamically linked; install busybox-static"
fi
add "$busybox" /usr/bin/busybox
ln -s busybox "$top/usr/bin/sh"

# The real kmod reports errors as users see them; busybox has its own words.
kmod=$(command -v kmod) || die "no kmod; install kmod"
add "$kmod" /usr/bin/kmod
for name in insmod rmmod modprobe lsmod modinfo depmod; do
	ln -s ../bin/kmod "$top/usr/sbin/$name"
done
libraries "$kmod"

cat >"$top/etc/passwd" <<-'PASSWD'
	root:x:0:0:root:/root:/bin/sh
	user:x:1000:1000:user:/home/user:/bin/sh
	nobody:x:65534:65534:nobody:/:/bin/sh
PASSWD
cat >"$top/etc/group" <<-'GROUP'
	root:x:0:
	user:x:1000:
	nogroup:x:65534:
GROUP
printf 'passwd: files\ngroup: files\nhosts: files\n' >"$top/etc/nsswitch.conf"
printf '127.0.0.1 localhost tierlab\n' >"$top/etc/hosts"
echo tierlab >"$top/etc/hostname"

# What full-screen programs need to know about the usual terminals.
for term in linux screen screen-256color tmux tmux-256color vt100 xterm xterm-256color; do
	for dir in /usr/share/terminfo /lib/terminfo /etc/terminfo; do
		entry=$dir/$(printf %.1s "$term")/$term
		[ ! -e "$entry" ] || { add "$entry" "$entry"; break; }
	done
done

cp "$here/init" "$top/init"
chmod 755 "$top/init"
[ -z "$conf" ] || cp "$conf" "$top/lab.conf"

if [ -n "$root" ]; then
	[ -d "$root" ] || die "--root: no directory '$root'"
	tar -C "$root" -cf - . | tar -C "$top" --keep-directory-symlink --no-same-owner -xf -
	find "$root" -type f \( -perm /111 -o -name '*.so*' \) ! -name '*.ko' >"$work/programs"
	while IFS= read -r program; do
		libraries "$program"
	done <"$work/programs"
fi

if [ -n "$modules" ]; then
	release=$(basename "$modules")
	dest=$top/lib/modules/$release
	mkdir -p "$dest"
	cp "$modules"/modules.builtin* "$modules/modules.order" "$dest"
	if [ -n "$loads" ]; then
		# Dependencies are known to depmod only for a tree it has indexed; the
		# cache is left as it is.
		mkdir -p "$work/index/lib/modules"
		cp -rs "$(cd "$modules" && pwd -P)" "$work/index/lib/modules/$release"
		rm -f "$work/index/lib/modules/$release/build"
		depmod -b "$work/index" "$release" || die "depmod failed for $release"
		for name in $loads; do
			modprobe -d "$work/index" -S "$release" --show-depends "$name" \
				>"$work/depends" || die "no kernel module '$name' in $release"
			sed -n 's/^insmod \([^ ]*\).*/\1/p' "$work/depends" |
			while IFS= read -r path; do
				part=${path#"$work/index"}
				mkdir -p "$top$(dirname "$part")"
				cp -L "$path" "$top$part"
			done
			echo "$name" >>"$top/etc/modules"
		done
	fi
	depmod -b "$top" "$release" || die "depmod failed for $release"
fi

# beside FILE: put it into the script's directory.
beside()
{
	[ -e "$1" ] || die "no file '$1'"
	name=$(basename "$1")
	[ ! -e "$run/$name" ] || die "two files named '$name'"
	cp -rL "$1" "$run/$name"
	if [ -d "$1" ]; then
		find "$1" -type f -perm /111 ! -name '*.ko' >"$work/programs"
		while IFS= read -r program; do
			libraries "$program"
		done <"$work/programs"
	else
		libraries "$1"
	fi
}

while IFS= read -r file; do
	beside "$file"
done <"$work/files"

if [ -n "$script" ]; then
	[ -f "$script" ] || die "no script '$script'"
	name=$(basename "$script")
	[ -e "$run/$name" ] || beside "$script"
	chmod 755 "$run/$name"
	# A script for another shell brings that shell.
	shell=$(sed -n '1s/^#! *\([^ ]*\).*/\1/p;1q' "$script" | tr -d '\0')
	if [ -n "$shell" ] && [ ! -e "$top$shell" ]; then
		case $shell in
		*/sh | */env) ;;
		*)
			[ -x "$shell" ] || die "$script wants '$shell', which is not on this machine"
			add "$shell" "$shell"
			libraries "$shell"
			;;
		esac
	fi
fi

# Written aside first: a file under the name asked for is a whole one.
(cd "$top" && find . -print0 | LC_ALL=C sort -z |
	cpio --null --create --format=newc --owner=+0:+0 --reproducible --quiet) >"$work/cpio" ||
	die "cpio failed"
mv "$work/cpio" "$out"
