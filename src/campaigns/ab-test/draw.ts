/**
 * Draws the sample of an A/B test: recipients one after another, each by a number that follows from the campaign and the contact.
 *
 * Each has the same chance of each variant, whatever its position, and the sizes come out exactly (selection sampling: Knuth, The Art of
 * Computer Programming, volume 2, section 3.4.2, algorithm S, for several groups). The same recipients give the same sample. Pure.
 */
import { createHash } from 'node:crypto'

export interface Draw {
  readonly campaignId: string
  /** How many recipients each variant still gets. */
  readonly wanted: readonly number[]
  /** Recipients still to be drawn, these included. */
  readonly left: number
}

/** @returns contacts with their variant; those of the rest are absent */
export function draw(
  { campaignId, wanted, left }: Draw,
  contacts: readonly number[],
): [contact: number, variant: number][] {
  const open = [...wanted]
  return contacts.flatMap((contact, at): [number, number][] => {
    let ticket = chanceOf(campaignId, contact) * Math.max(1, left - at)
    const variant = open.findIndex(count => {
      ticket -= count
      return ticket < 0
    })
    if (variant < 0) return []
    open[variant] = (open[variant] ?? 0) - 1
    return [[contact, variant]]
  })
}

const BITS = 48

/** From 0 to below 1. */
function chanceOf(campaignId: string, contact: number): number {
  const digest = createHash('sha256').update(`${campaignId} ${contact}`).digest()
  return digest.readUIntBE(0, BITS / 8) / 2 ** BITS
}
