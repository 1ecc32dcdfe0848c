/** Findings of several variants as one list. Pure. */
import { MAX_PLACES, type CampaignFinding, type FindingPlace } from './findings.js'

interface Merged {
  readonly first: CampaignFinding
  readonly variants: Set<number>
  recipients: number
  readonly places: FindingPlace[]
}

/** @param found by variant; what all of them have is said once, for all mail */
export function mergeVariants(found: readonly (readonly CampaignFinding[])[]): CampaignFinding[] {
  const [only = []] = found
  if (found.length < 2) return [...only]
  const merged = new Map<string, Merged>()
  found.forEach((findings, variant) => {
    for (const one of findings) {
      const key = JSON.stringify([one.code, one.about, one.message])
      const known = merged.get(key) ?? { first: one, variants: new Set<number>(), recipients: 0, places: [] }
      merged.set(key, known)
      known.variants.add(variant)
      known.recipients = Math.max(known.recipients, one.recipients ?? 0)
      known.places.push(...(one.places ?? []))
    }
  })
  return [...merged.values()].map(({ first, variants, recipients, places }) => ({
    ...first,
    ...(places.length === 0 ? {} : { places: different(places) }),
    ...(first.recipients === undefined ? {} : { recipients }),
    ...(variants.size === found.length ? {} : { variants: [...variants] }),
  }))
}

/** Variants often have the same template. */
function different(places: readonly FindingPlace[]): FindingPlace[] {
  const byText = new Map(places.map(place => [JSON.stringify(place), place]))
  return [...byText.values()].slice(0, MAX_PLACES)
}
