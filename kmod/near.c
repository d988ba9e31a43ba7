// SPDX-License-Identifier: GPL-2.0
/*
 * Pages near a fault: what follows it in its page table, read under its lock.
 *
 * The walk needs the vm_fault, which lives as long as the fault does. It is kept
 * per CPU for the duration of one promote() call: there the page-table lock, a
 * spinlock, holds the task on its CPU, so no other call can find it. Under
 * PREEMPT_RT that is not so, and there are no near pages.
 */
#include "internal.h"
#include <linux/minmax.h>
#include <linux/pgtable.h>

struct near_fault {
	struct vm_fault *vmf;	/* NULL: no promote() with an address runs on this CPU */
	u32 now_ms;
};
static DEFINE_PER_CPU(struct near_fault, near_fault);

void tier_near_begin(struct vm_fault *vmf, u32 now_ms)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return;
	this_cpu_write(near_fault.now_ms, now_ms);
	this_cpu_write(near_fault.vmf, vmf);
}

void tier_near_end(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		this_cpu_write(near_fault.vmf, NULL);
}

/* The folio of a page that waits on the slow tier for its hint fault, else NULL. */
static struct folio *waiting_folio(pte_t pte)
{
	struct page *page;

	/* Special entries have no page that may move; the zero page is one of them. */
	if (!pte_present(pte) || !pte_protnone(pte) || pte_special(pte) ||
	    !pfn_valid(pte_pfn(pte)))
		return NULL;
	page = pfn_to_page(pte_pfn(pte));
	if (is_zone_device_page(page) || tier_node_left_alone(page_to_nid(page)))
		return NULL;
	return page_folio(page);
}

u32 tier_near_pages(u32 max)
{
	struct vm_fault *vmf = this_cpu_read(near_fault.vmf);
	u32 now_ms = this_cpu_read(near_fault.now_ms), nr = 0;
	struct folio *folio, *last;
	unsigned long end;

	/* No page table: the fault is on a huge entry. */
	if (!vmf || !vmf->pte || vmf->vma->vm_flags & (VM_PFNMAP | VM_MIXEDMAP))
		return 0;
	end = min(vmf->vma->vm_end, (vmf->address & PMD_MASK) + PMD_SIZE);
	max = min_t(unsigned long, max, ((end - vmf->address) >> PAGE_SHIFT) - 1);
	/* The faulting folio keeps its stamp until the verdict. */
	last = waiting_folio(ptep_get(vmf->pte));
	while (nr < max) {
		folio = waiting_folio(ptep_get(vmf->pte + nr + 1));
		if (!folio)
			break;
		/* Pages of one large folio share one stamp. */
		if (folio != last)
			tier_restamp(folio, READ_ONCE(*tier_folio_flags(folio)), now_ms);
		last = folio;
		nr++;
	}
	return nr;
}
