/** Findings of several variants as one list. Pure. */
import type { CampaignFinding } from './findings.js'

/** @param found by variant; what all of them have is said once, for all mail */
export function mergeVariants(found: readonly (readonly CampaignFinding[])[]): CampaignFinding[] {
  const [only = []] = found
  if (found.length < 2) return [...only]
  const merged = new Map<string, { first: CampaignFinding; variants: Set<number>; recipients: number }>()
  found.forEach((findings, variant) => {
    for (const one of findings) {
      const key = JSON.stringify([one.code, one.about, one.message])
      const known = merged.get(key) ?? { first: one, variants: new Set<number>(), recipients: 0 }
      merged.set(key, known)
      known.variants.add(variant)
      known.recipients = Math.max(known.recipients, one.recipients ?? 0)
    }
  })
  return [...merged.values()].map(({ first, variants, recipients }) => ({
    ...first,
    ...(first.recipients === undefined ? {} : { recipients }),
    ...(variants.size === found.length ? {} : { variants: [...variants] }),
  }))
}
