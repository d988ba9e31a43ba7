# SPDX-License-Identifier: GPL-2.0
# Entry points: make demo, make test; `make help` lists the rest.
#
# Everything that is made lands in build/. Variables: V=1 shows commands,
# O=DIR builds elsewhere, KDIR=DIR builds the module against that kernel.

O	?= build
V	?= 0
PREFIX	?= /usr/local
DESTDIR	?=
KREL	?= $(shell uname -r)
KDIR	?= /lib/modules/$(KREL)/build

first	= $(firstword $(foreach t,$(1),$(if $(shell command -v $(t) 2>/dev/null),$(t))))
CLANG	?= $(or $(call first,clang-19 clang-20 clang-21 clang),clang-19)
STRIP_BPF ?= $(or $(call first,llvm-strip-19 llvm-strip-20 llvm-strip-21 llvm-strip),llvm-strip-19)
ARCH	:= $(shell uname -m | sed 's/x86_64/x86/;s/aarch64/arm64/')

ifeq ($(V),1)
Q	=
say	= @:
else
Q	= @
say	= @printf '  %-8s %s\n' $(1) $(2)
MAKEFLAGS += --no-print-directory
endif

CFLAGS	?= -O2 -g
WARN	:= -Wall -Wextra -Werror -Wno-unused-parameter -Wmissing-prototypes -Wstrict-prototypes
USER_CFLAGS := -std=gnu11 $(WARN) -D_GNU_SOURCE -Iinclude -Iuser $(CFLAGS)
USER_LIBS := -lbpf -lelf -lz -ljson-c -lncursesw -lmicrohttpd
BPF_CFLAGS := -g -O2 -mcpu=v3 -target bpf -D__TARGET_ARCH_$(ARCH) -I. -Iinclude \
	-Wall -Wextra -Werror -Wno-unused-parameter -Wno-unused-function

LIBTIER_SRC := $(wildcard user/libtier/*.c)
TIERCTL_SRC := $(wildcard user/*.c user/out/*.c)
LIBTIER_OBJ := $(LIBTIER_SRC:%.c=$(O)/%.o)
TIERCTL_OBJ := $(TIERCTL_SRC:%.c=$(O)/%.o)
BPF_OBJ	:= $(patsubst bpf/%.c,$(O)/bpf/%.o,$(wildcard bpf/*.bpf.c))
UNIT	:= $(patsubst %.c,$(O)/%,$(wildcard tests/unit/test_*.c))
GUEST_BIN := $(patsubst %.c,$(O)/%,$(filter-out %.bpf.c,$(wildcard tests/guest/*.c)))
GUEST_BPF := $(patsubst %.c,$(O)/%.o,$(wildcard tests/guest/*.bpf.c))
TIERLOAD_SRC := $(wildcard tests/bench/tierload*.c) tests/bench/parse.c
# Native benches: what a decision costs on this machine, without tiers.
BENCH_BPF := empty.bpf.o lookup.bpf.o
NATIVE_BENCH := decision_cost scale
BENCH_BIN := $(O)/tests/bench/tierload $(O)/tests/bench/tiersim/tiersim \
	$(patsubst %.c,$(O)/%,$(filter-out $(TIERLOAD_SRC) %.bpf.c \
		$(patsubst %,tests/bench/%.c,replaybench scale_evict $(NATIVE_BENCH)),$(wildcard tests/bench/*.c))) \
	$(addprefix $(O)/bench/,$(NATIVE_BENCH)) $(addprefix $(O)/tests/bench/,$(BENCH_BPF))

.PHONY: all user bpf bench-native kmod unit testbins help deps deps-lab demo test bench lab lab-root \
	docs install uninstall clean
.DELETE_ON_ERROR:

all: user bpf		## tierctl and the BPF objects (not the module: make kmod)

help:			## this list
	@echo 'Targets:'
	@sed -n 's/^\([a-z-]*\):.*##[ \t]*\(.*\)/\1|\2/p' Makefile | awk -F'|' '{ printf "  %-12s %s\n", $$1, $$2 }'
	@echo 'Variables: V=1 O=DIR PREFIX=DIR DESTDIR=DIR KDIR=DIR KREL=RELEASE'
	@echo 'Lab:       KERNEL=6.12 FAST_MB=512 SLOW_MB=1536 CPUS=2 NODES=2tier ICOUNT=1'
	@echo '           RUN=path/script.sh FILES="a b c" OUT=DIR TIMEOUT=S APPEND="words" BPFFS=1'
	@echo 'Bench:     WORKLOADS="W1 W3" POLICIES="rank fixed" RUNS=3 RUN_S=240 JOBS=1 LIMIT=1 FRESH=1'

user: $(O)/user/tierctl
bpf: $(BPF_OBJ)

# ---- user space ----

$(O)/user/%.o: user/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) -MMD -MP -c -o $@ $<

$(O)/user/libtier.a: $(LIBTIER_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/user/tierctl: $(TIERCTL_OBJ) $(O)/user/libtier.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(USER_LIBS) -lm

# ---- BPF ----

$(O)/%.bpf.o: %.bpf.c
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<
	$(Q)$(STRIP_BPF) -g $@

# ---- kernel module: built in a shadow of kmod/ so that the source stays clean ----

# MAKEFLAGS is emptied, or kbuild takes an O= of ours for its own.
# ENTER: command prefix that brings the compiler of that kernel's suite, if need be.
ENTER	?=
KMOD_DIR = $(abspath $(O))/kmod/$(KREL)
kmod:			## the kernel module for KREL, against KDIR
	@test -e $(KDIR)/Makefile || { \
		echo "kmod: no kernel headers in $(KDIR): install linux-headers-$(KREL) or set KDIR=" >&2; exit 1; }
	@mkdir -p $(KMOD_DIR) && ln -sf $(abspath kmod)/* $(KMOD_DIR)/
	$(call say,KMOD,$(O)/kmod/$(KREL)/tier_policy.ko)
	$(Q)MAKEFLAGS= $(ENTER) $(MAKE) -s -C $(KDIR) M=$(KMOD_DIR) TIER_INCLUDE=$(abspath include) modules

# ---- tests and benches: programs ----

unit: $(UNIT)
testbins: $(GUEST_BIN) $(GUEST_BPF) $(BENCH_BIN)

# Unit tests see the sources they test; main() of tierctl stays out.
UNIT_OBJ := $(filter-out $(O)/user/main.o,$(TIERCTL_OBJ)) $(O)/user/libtier.a
TIERLOAD_LIB := $(patsubst %.c,$(O)/%.o,$(filter-out tests/bench/tierload.c,$(TIERLOAD_SRC)))

$(TIERLOAD_LIB): $(O)/tests/bench/%.o: tests/bench/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) -pthread -MMD -MP -c -o $@ $<

$(O)/tests/unit/test_tierload: tests/unit/test_tierload.c $(TIERLOAD_LIB)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) -Itests/bench -pthread -o $@ $^ -lcmocka -ljson-c -lm

$(O)/tests/unit/%: tests/unit/%.c $(UNIT_OBJ)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(UNIT_OBJ) -lcmocka $(USER_LIBS) -lm

$(O)/tests/bench/tierload: $(TIERLOAD_SRC) $(wildcard tests/bench/tierload*.h) tests/bench/parse.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) -pthread -o $@ $(TIERLOAD_SRC) -ljson-c -lm

$(O)/bench/%: tests/bench/%.c tests/bench/replaybench.c $(O)/user/libtier.a tests/bench/replaybench.h
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) -o $@ $(filter-out %.h,$^) $(USER_LIBS) -lm

$(O)/bench/scale: tests/bench/scale_evict.c tests/bench/scale.h

$(O)/tests/bench/kvload: tests/bench/kvload.c $(TIERLOAD_LIB)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) -pthread -o $@ $^ -ljson-c -lm

TIERSIM_SRC := $(wildcard tests/bench/tiersim/*.c) tests/bench/tierload_dist.c tests/bench/parse.c
$(O)/tests/bench/tiersim/tiersim: $(TIERSIM_SRC) $(wildcard tests/bench/tiersim/*.h include/tier/*) tests/bench/tierload_dist.h tests/bench/parse.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) -o $@ $(TIERSIM_SRC) -lbpf -ljson-c -lm

$(O)/tests/%: tests/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) -pthread -MMD -MP -MF $@.d -o $@ $< -ljson-c -lbpf -lelf -lz -lm

# ---- setting up the machine ----

deps:			## install what the build needs (Debian packages)
	@scripts/deps.sh build
deps-lab:		## install what build, lab and tests need
	@scripts/deps.sh build lab

# ---- the lab: a machine with two memory tiers ----

KERNEL	?= 6.12
FAST_MB	?= 512
SLOW_MB	?= 1536
CPUS	?= 2
NODES	?= 2tier
RUN	?=
FILES	?=
LAB_ROOT = $(O)/lab/$(KERNEL)/root

# What the guest gets: an installed tree with the module for its kernel.
lab-root: deps-lab
	@$(MAKE) all testbins
	@set -e; env=$$(tests/lab/fetch.sh $(KERNEL)); eval "$$env"; \
	$(MAKE) kmod KREL="$$RELEASE" KDIR="$$KDIR" ENTER="$$ENTER"; \
	rm -rf $(LAB_ROOT); \
	$(MAKE) install DESTDIR=$(abspath $(LAB_ROOT)) KREL="$$RELEASE" >/dev/null

lab: lab-root		## shell in the tiered VM, or RUN=script.sh FILES="..." there
	@tests/lab/run.sh --kernel $(KERNEL) --root $(LAB_ROOT) --fast-mb $(FAST_MB) \
		--slow-mb $(SLOW_MB) --cpus $(CPUS) --nodes $(NODES) $(if $(filter 1,$(ICOUNT)),--icount) \
		$(if $(TIMEOUT),--timeout $(TIMEOUT)) $(if $(OUT),--out $(OUT)) \
		$(if $(APPEND),--append "$(APPEND)") $(if $(filter 1,$(BPFFS)),--bpffs) \
		$(if $(RUN),--run $(RUN)) $(foreach f,$(FILES),--file $(f))

demo: lab-root		## the main job: policies decide real hint faults, side by side with mode 2
	@tests/demo/demo.sh $(O) $(KERNEL)

# WORKLOADS="W1 ..." POLICIES="rank ..." RUNS=3 RUN_S=240: what; JOBS=N: machines at a time;
# LIMIT=N: at most N boots in this call, the rest in the next; FRESH=1: measure all anew;
# LATENCY_NS="100 250": of the tiers.
bench: lab-root		## policies beside mode 2: W1 to W8, and what a decision costs
	@scripts/deps.sh bench
	@tests/bench/bench.sh --build $(abspath $(O)) --kernel $(KERNEL) \
		$(if $(WORKLOADS),--workloads "$(WORKLOADS)") $(if $(POLICIES),--policies "$(POLICIES)") \
		$(if $(RUNS),--runs $(RUNS)) $(if $(LIMIT),--limit $(LIMIT)) $(if $(filter 1,$(FRESH)),--fresh) \
		$(if $(LATENCY_NS),--latency-ns "$(LATENCY_NS)") $(if $(RUN_S),--seconds $(RUN_S)) \
		$(if $(JOBS),--jobs $(JOBS))

bench-native: bpf $(addprefix $(O)/bench/,$(NATIVE_BENCH)) $(addprefix $(O)/tests/bench/,$(BENCH_BPF)) ## cost and scale of decisions on this machine (root)
	$(O)/bench/decision_cost --json $(O)/bench/decision_cost.json
	$(O)/bench/scale --json $(O)/bench/scale.json

test: lab-root		## unit tests, verifier ring, guest tests
	@$(MAKE) unit
	@TIER_BUILD=$(abspath $(O)) tests/run.sh --kernel $(KERNEL)

# ---- install ----

# Made by tierctl itself from its command tables, so that they cannot disagree.
GENERATED_DOCS := share/man/man8/tierctl.8 share/man/man5/tierctl.conf.5 \
	share/man/man7/tierctl-counters.7 share/bash-completion/completions/tierctl \
	share/zsh/site-functions/_tierctl

install: all		## into DESTDIR/PREFIX (and the module, if built for KREL)
	$(Q)install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/lib/tierctl $(DESTDIR)$(PREFIX)/include/tier
	$(Q)install -m 755 $(O)/user/tierctl $(DESTDIR)$(PREFIX)/sbin/
	$(Q)install -m 644 $(BPF_OBJ) $(DESTDIR)$(PREFIX)/lib/tierctl/
	$(Q)install -m 644 vmlinux.h $(wildcard include/tier/*) $(DESTDIR)$(PREFIX)/include/tier/
	$(Q)install -d $(addprefix $(DESTDIR)$(PREFIX)/,$(dir $(GENERATED_DOCS)) lib/systemd/system)
	$(Q)$(O)/user/tierctl help --man >$(DESTDIR)$(PREFIX)/share/man/man8/tierctl.8
	$(Q)for page in tierctl.conf.5 tierctl-counters.7; do \
		$(O)/user/tierctl help --man --page $$page \
			>$(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$$page || exit 1; done
	$(Q)$(O)/user/tierctl completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/tierctl
	$(Q)$(O)/user/tierctl completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_tierctl
	$(Q)sed 's|@SBINDIR@|$(PREFIX)/sbin|' systemd/tierctl.service.in \
		>$(DESTDIR)$(PREFIX)/lib/systemd/system/tierctl.service
	$(Q)test -e $(DESTDIR)/etc/tierctl.conf || \
		install -D -m 644 systemd/tierctl.conf $(DESTDIR)/etc/tierctl.conf
	$(Q)if [ -e $(O)/kmod/$(KREL)/tier_policy.ko ]; then \
		install -D -m 644 $(O)/kmod/$(KREL)/tier_policy.ko \
			$(DESTDIR)/lib/modules/$(KREL)/updates/tier_policy.ko; \
	else echo "no module built for $(KREL): run 'make kmod' and install again"; fi

docs: user		## rewrite the pages that are generated (docs/counters.md)
	$(Q)$(O)/user/tierctl help --counters >docs/counters.md

uninstall:		## remove what install put there (but /etc/tierctl.conf: it may be yours)
	rm -f $(DESTDIR)$(PREFIX)/sbin/tierctl $(DESTDIR)/lib/modules/$(KREL)/updates/tier_policy.ko \
		$(addprefix $(DESTDIR)$(PREFIX)/,$(GENERATED_DOCS) lib/systemd/system/tierctl.service)
	rm -rf $(DESTDIR)$(PREFIX)/lib/tierctl $(DESTDIR)$(PREFIX)/include/tier

clean:			## remove build/
	rm -rf $(O)

-include $(LIBTIER_OBJ:.o=.d) $(TIERCTL_OBJ:.o=.d) $(BPF_OBJ:.o=.d) $(GUEST_BPF:.o=.d) \
	$(TIERLOAD_LIB:.o=.d) $(addsuffix .d,$(UNIT) $(GUEST_BIN) $(BENCH_BIN))
